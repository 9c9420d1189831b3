// Where the texts of a language lie, and who has asked for them.
import type { IntlMessageFormat } from "intl-messageformat";
import { language } from "./language.ts";

/** What the first page shows, what else everybody sees, what operators alone see, and what the server says, if not English. */
export type TextPart = "first" | "people" | "operators" | "phrases";
/** As it stands in its file, or taken apart (`bundle.ts`) where it has values or elements: the parser stays on the server. */
export type Text = string | ReturnType<IntlMessageFormat["getAst"]>;
export type Texts = Readonly<Record<string, Text>>;

declare global {
  interface Window {
    /** The first script and the app are bundled apart and share this alone. */
    tollgateTexts?: Partial<Record<TextPart, Promise<Texts>>>;
  }
}

/** One request for each part; one that failed is made again. The page names the files, whose names hold a hash. */
export function requestTexts(part: TextPart): Promise<Texts> {
  const requested = (window.tollgateTexts ??= {});
  return (requested[part] ??= load(part).catch((error: unknown) => {
    delete requested[part];
    throw error;
  }));
}

async function load(part: TextPart): Promise<Texts> {
  const { content } = document.querySelector<HTMLMetaElement>("meta[name=texts]")!;
  const path = content.split(" ").find((file) => file.includes(`${language}-${part}`))!;
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return (await response.json()) as Texts;
}
