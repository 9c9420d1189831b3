// The playground's input: text, pictures and files (dropped, pasted or chosen), web search, and the buttons to send and stop.
import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { count } from "../../format.ts";
import { Icon } from "../../parts/icons.tsx";
import { focusHome, goHome } from "../../parts/kept-focus.ts";
import { toast } from "../../parts/toasts.tsx";
import { change, isImage, type Picture, settings } from "./conversation.ts";
import { fileLimits, readPictures, Thumbs } from "./pictures.tsx";

const isTouched = (): boolean => matchMedia("(pointer: coarse)").matches;
/** Where the browser cannot size a field by its content, it has as many rows as lines. */
const growsByItself = CSS.supports("field-sizing", "content");
const rowsMax = 8;
/** A longer text that is pasted stands beside the field: a browser takes seconds for a megabyte in it. */
const pastedMaxLength = 20_000;
/** Beyond it, sizing takes seconds, and the field is as high as it gets anyway. */
const growsMaxLength = 10_000;

type ComposerProps = Readonly<{
  streaming: boolean;
  /** Why nothing can be sent now, or null. */
  obstacle: string | null;
  /** The chosen models that read no images. */
  blind: readonly string[];
  onSend: (text: string, pictures: readonly Picture[]) => void;
  onStop: () => void;
}>;

export function Composer({ streaming, obstacle, blind, onSend, onStop }: ComposerProps): VNode {
  const [text, setText] = useState("");
  const [pictures, setPictures] = useState<readonly Picture[]>([]);
  const [pasted, setPasted] = useState<readonly string[]>([]);
  const [dropping, setDropping] = useState(false);
  const chooser = useRef<HTMLInputElement>(null);
  const writing = useRef<HTMLTextAreaElement>(null);
  const round = useRef<HTMLButtonElement>(null);
  const empty = text.trim() === "" && pictures.length === 0 && pasted.length === 0;

  useLayoutEffect(() => {
    // Who stopped the answer, or waited at its button, goes on writing: there is nothing to send yet.
    if (!streaming && round.current !== null && document.activeElement === round.current) goHome();
  }, [streaming]);

  const add = async (files: FileList | null | undefined): Promise<void> => {
    if (files == null || files.length === 0) return;
    const read = await readPictures([...files], pictures);
    setPictures((before) => [...before, ...read.pictures]);
    for (const sentence of read.refused) toast(sentence, "failed");
  };
  const hindered =
    obstacle ?? (pictures.some(isImage) && blind.length > 0 ? `${blind.join(" and ")} reads no images` : null);
  const send = (): void => {
    if (streaming || hindered !== null || empty) return;
    onSend([text, ...pasted].filter((part) => part.trim() !== "").join("\n\n"), pictures);
    setText("");
    setPasted([]);
    setPictures([]);
    if (isTouched()) writing.current?.blur(); // the answer gets the room of the keyboard
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div class="composer-column">
        <div
          class={dropping ? "composer-box dropping" : "composer-box"}
          onDragOver={(event) => {
            event.preventDefault();
            setDropping(true);
          }}
          onDragLeave={() => setDropping(false)}
          onDrop={(event) => {
            event.preventDefault();
            setDropping(false);
            void add(event.dataTransfer?.files);
          }}
        >
          <Thumbs
            pictures={pictures}
            onRemove={(cancelSignal) => setPictures(pictures.filter((kept) => kept !== cancelSignal))}
          />
          {pasted.length > 0 && (
            <ul class="pasted">
              {pasted.map((words, index) => (
                <li key={index} class="badge">
                  Pasted text, {count(words.length)} characters
                  <button
                    type="button"
                    class="icon-button"
                    aria-label="Remove the pasted text"
                    onClick={() => setPasted(pasted.filter((_, other) => other !== index))}
                  >
                    <Icon name="close" size={13} />
                  </button>
                </li>
              ))}
            </ul>
          )}
          <textarea
            ref={writing}
            {...focusHome}
            class={text.length > growsMaxLength ? "long" : undefined}
            rows={
              text.length > growsMaxLength ? rowsMax : growsByItself ? 1 : Math.min(rowsMax, text.split("\n").length)
            }
            aria-label="Message"
            placeholder="Ask something…"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onPaste={(event) => {
              const words = event.clipboardData?.getData("text/plain") ?? "";
              if (words.length > pastedMaxLength) {
                event.preventDefault();
                setPasted([...pasted, words]);
              } else void add(event.clipboardData?.files);
            }}
            onKeyDown={(event) => {
              if (event.key === "Escape" && streaming) onStop();
              // On a phone's keyboard Enter is the only way to a new line.
              if (event.key !== "Enter" || event.shiftKey || event.isComposing || isTouched()) return;
              event.preventDefault();
              send();
            }}
          />
          {/* The field keeps the focus, and a phone its keyboard, until the button was touched: nothing moves below the finger. */}
          <div class="composer-tools" onMouseDown={(event) => isTouched() && event.preventDefault()}>
            <button
              type="button"
              class="icon-button"
              aria-label="Add files"
              title={`Add ${blind.length > 0 ? "" : "images, "}PDFs and text files, ${fileLimits}: choose, drop or paste them`}
              onClick={() => chooser.current?.click()}
            >
              <Icon name="clip" />
            </button>
            <input
              ref={chooser}
              type="file"
              multiple
              hidden
              onChange={(event) => {
                void add(event.currentTarget.files);
                event.currentTarget.value = "";
              }}
            />
            <button
              type="button"
              class="toggle"
              aria-pressed={settings.value.webSearch}
              onClick={() => change({ webSearch: !settings.value.webSearch })}
            >
              <Icon name="globe" size={15} /> Web search
            </button>
            <span class="grow quiet small-text right" role="status">
              {hindered}
            </span>
            {streaming ? (
              <button ref={round} type="button" class="round-button" aria-label="Stop" title="Stop" onClick={onStop}>
                <Icon name="stop" />
              </button>
            ) : (
              <button
                ref={round}
                type="submit"
                class="round-button"
                aria-label="Send"
                title="Send (Enter)"
                disabled={empty || hindered !== null}
              >
                <Icon name="send" />
              </button>
            )}
          </div>
        </div>
      </div>
    </form>
  );
}
