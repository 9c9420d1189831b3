// tollgate pdf-text: reads a PDF from standard input and writes its text. The server runs it for each PDF of a request, so
// that a malicious file can exhaust only this process.
import { CommandError } from "../core/expected-error.ts";
import { pdfText } from "../tools/media/pdf-text.ts";
import { standBehindGateway } from "../tools/worker-process.ts";

export default async function printPdfText(): Promise<number> {
  standBehindGateway();
  const bytes = await Bun.stdin.bytes();
  const text = await pdfText(bytes).catch((error: Error) => {
    throw new CommandError(`pdf-text: not a PDF that can be read: ${error.message}`);
  });
  await Bun.write(Bun.stdout, text);
  return 0;
}
