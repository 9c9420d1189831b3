// The server handles exactly the routes of the console's contract; what it replies is checked at each call that a test makes
// (console-site.ts).
import { expect, test } from "bun:test";
import { routes } from "../../src/console/api/routes.ts";
import { ConsoleSite } from "./console-site.ts";

test("every route of the contract has one handler", () => {
  const handled = new ConsoleSite().routes.map(({ method, path }) => `${method} ${path}`);
  expect(handled.sort()).toEqual(Object.keys(routes).sort());
});
