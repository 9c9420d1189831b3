// A block of code, colored for its language, with a button that copies it.
import { signal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useId, useMemo, useState } from "preact/hooks";
import { type Highlighter, loadHighlighter, type Token } from "../highlight.ts";
import { CopyButton } from "./copy-button.tsx";
import { LongText } from "./long-text.tsx";
import { t } from "../texts.ts";

/** Null until it is loaded; code is plain until then. */
const highlighter = signal<Highlighter | null>(null);

const colors: readonly (readonly [scope: RegExp, className: string])[] = [
  [/^comment/, "tok-comment"],
  [/^(?:keyword|literal|built_in|type)/, "tok-keyword"],
  [/^(?:string|regexp|subst)/, "tok-string"],
  [/^(?:number|symbol)/, "tok-number"],
  [/^(?:title|section|function)/, "tok-title"],
  [/^(?:attr|property|variable|name|params)/, "tok-attr"],
];

const draw = (tokens: readonly Token[]): ComponentChildren =>
  tokens.map((token, index) =>
    typeof token === "string" ? (
      token
    ) : (
      <span key={index} class={colors.find(([scope]) => scope.test(token.scope))?.[1]}>
        {draw(token.children)}
      </span>
    ),
  );

type CodeProps = Readonly<{
  code: string;
  language: string;
  name?: string;
  /** What is copied, if the shown text leaves something out. */
  copied?: string;
}>;

export function CodeBlock({ code, language, name = language, copied = code }: CodeProps): VNode {
  useEffect(() => {
    // If it cannot be loaded, code stays plain.
    void loadHighlighter().then(
      (loaded) => {
        highlighter.value = loaded;
      },
      () => {},
    );
  }, []);
  const paint = highlighter.value;
  const colored = useMemo(
    () => (paint === null ? undefined : (piece: string) => draw(paint(piece, language.toLowerCase()) ?? [piece])),
    [paint, language],
  );
  return (
    <div class="code">
      <header>
        <span>{name === "" ? t("code.code") : name}</span>
        <CopyButton text={copied} label={t("code.copy")} />
      </header>
      <pre tabIndex={0}>
        <code>
          <LongText key={String(paint === null)} text={code} draw={colored} />
        </code>
      </pre>
    </div>
  );
}

export type Snippet = Readonly<{
  name: string;
  language: string;
  code: string;
  copied?: string;
  note?: ComponentChildren;
}>;

/** Snippets as tabs; arrow keys go from tab to tab. */
export function SnippetTabs({ snippets, label }: { snippets: readonly Snippet[]; label: string }): VNode | null {
  const [chosen, setChosen] = useState(0);
  const id = useId();
  const snippet = snippets[chosen] ?? snippets[0];
  if (snippet === undefined) return null;
  const current = snippets.indexOf(snippet);
  const choose = (index: number): void => {
    setChosen(index);
    document.getElementById(`${id}-tab-${index}`)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    choose((current + step + snippets.length) % snippets.length);
  };
  return (
    <div class="stack">
      <div class="tab-list" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
        {snippets.map(({ name }, index) => (
          <button
            key={name}
            id={`${id}-tab-${index}`}
            type="button"
            role="tab"
            aria-selected={index === current}
            aria-controls={`${id}-panel`}
            tabIndex={index === current ? 0 : -1}
            onClick={() => setChosen(index)}
          >
            {name}
          </button>
        ))}
      </div>
      <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-tab-${current}`} class="stack">
        {snippet.note !== undefined && <p class="quiet">{snippet.note}</p>}
        <CodeBlock code={snippet.code} language={snippet.language} copied={snippet.copied} />
      </div>
    </div>
  );
}
