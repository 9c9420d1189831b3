// Whether the packaging tests can run: they make other machines on this one, from Debian's packages, which takes
// minutes.
import { missing } from "../fixtures/optional.ts";

const wanted = process.env["TOLLGATE_PACKAGING"] === "1";

/** True when the tests that need `programs` must be skipped; each reason is printed. */
export function withoutPackaging(what: string, programs: readonly string[]): boolean {
  if (missing(`the time for ${what}`, wanted, "npm run test:packaging takes it", false)) return true;
  return programs.filter((name) => missing(name, Bun.which(name) !== null, "install it", false)).length > 0;
}
