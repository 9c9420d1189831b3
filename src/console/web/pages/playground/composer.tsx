// The playground's input: text, pictures and files (dropped, pasted or chosen), web search, Send and Stop.
import type { VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import type { ConsoleModels } from "../../../api/overview.ts";
import { DropBox } from "../../parts/drop-box.tsx";
import { Icon } from "../../parts/icons.tsx";
import { focusHome } from "../../parts/kept-focus.ts";
import { toast } from "../../parts/toasts.tsx";
import { t } from "../../texts.ts";
import { Budget } from "./budget.tsx";
import { change, isAudio, isImage, modelsOf, type Picture, settings } from "./conversation.ts";
import { readPictures, Thumbs } from "./pictures.tsx";
import { IconButton } from "../../parts/button.tsx";

const isTouched = (): boolean => matchMedia("(pointer: coarse)").matches;
/** False: the browser cannot size a field by its content, so it gets as many rows as the text has lines. */
const growsByItself = CSS.supports("field-sizing", "content");
const rowsMax = 8;
/** A longer pasted text is kept outside the field: a megabyte in it takes a browser seconds. */
const pastedMaxLength = 20_000;
/** Sizing the field for a longer text takes seconds, and the field has its full height by then. */
const growsMaxLength = 10_000;

type ComposerProps = Readonly<{
  streaming: boolean;
  /** Why nothing can be sent now, or null. */
  obstacle: string | null;
  models: ConsoleModels | null;
  onSend: (text: string, pictures: readonly Picture[]) => void;
  onStop: () => void;
}>;

export function Composer({ streaming, obstacle, models, onSend, onStop }: ComposerProps): VNode {
  const draft = useDraft();
  const writing = useRef<HTMLTextAreaElement>(null);
  const { text, pictures, pasted, isEmpty } = draft.value;
  const hindered = obstacle ?? misfitOf(pictures, models);
  const send = (): void => {
    if (streaming || hindered !== null || isEmpty) return;
    onSend([text, ...pasted].filter((part) => part.trim() !== "").join("\n\n"), pictures);
    draft.clear();
    if (isTouched()) writing.current?.blur(); // hides the keyboard, which makes room for the answer
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
        <DropBox class="composer-box" onFiles={(files) => void draft.add(files)}>
          <Thumbs
            pictures={pictures}
            onRemove={(removed) => draft.change({ pictures: pictures.filter((kept) => kept !== removed) })}
          />
          <Pasted
            texts={pasted}
            onRemove={(index) => draft.change({ pasted: pasted.filter((_, other) => other !== index) })}
          />
          <textarea
            ref={writing}
            {...focusHome}
            class={text.length > growsMaxLength ? "long" : undefined}
            rows={rowsOf(text)}
            aria-label={t("play.message")}
            placeholder={t("play.ask")}
            value={text}
            onInput={(event) => draft.change({ text: event.currentTarget.value })}
            onPaste={(event) => draft.paste(event)}
            onKeyDown={(event) => {
              if (event.key === "Escape" && streaming) onStop();
              // On a phone, Enter is the only way to start a new line.
              if (event.key !== "Enter" || event.shiftKey || event.isComposing || isTouched()) return;
              event.preventDefault();
              send();
            }}
          />
          {/* Touching a button leaves the focus in the field and the keyboard open, so that nothing moves below the finger. */}
          <div class="composer-tools" onMouseDown={(event) => isTouched() && event.preventDefault()}>
            <AddFiles onFiles={(files) => void draft.add(files)} />
            <button
              type="button"
              class="toggle"
              aria-pressed={settings.value.webSearch}
              onClick={() => change({ webSearch: !settings.value.webSearch })}
            >
              <Icon name="globe" size={15} /> {t("play.web_search")}
            </button>
            <span class="grow quiet small-text right" role="status">
              {hindered}
            </span>
            <RoundButton streaming={streaming} disabled={isEmpty || hindered !== null} onStop={onStop} />
          </div>
        </DropBox>
        <Budget models={models} canSend={hindered === null} text={[text, ...pasted].join("\n\n")} pictures={pictures} />
      </div>
    </form>
  );
}

/** Why a chosen model cannot take one of the files; null: each can. */
function misfitOf(pictures: readonly Picture[], models: ConsoleModels | null): string | null {
  const chosen = modelsOf(settings.value);
  const of = models?.models.filter(({ id }) => chosen.includes(id)) ?? [];
  const blind = of.filter(({ reads_images }) => !reads_images).map(({ id }) => id);
  const deaf = of.filter(({ reads_audio }) => !reads_audio).map(({ id }) => id);
  if (pictures.some(isImage) && blind.length > 0) return t("play.reads_no_images", { models: blind.join(", ") });
  if (!pictures.some(isAudio)) return null;
  if (deaf.length > 0) return t("play.reads_no_audio", { models: deaf.join(", ") });
  return settings.value.dialect === "chat-completions" ? null : t("play.audio_dialect");
}

const rowsOf = (text: string): number => {
  if (text.length > growsMaxLength) return rowsMax;
  return growsByItself ? 1 : Math.min(rowsMax, text.split("\n").length);
};

type Draft = Readonly<{ text: string; pictures: readonly Picture[]; pasted: readonly string[] }>;
const emptyDraft: Draft = { text: "", pictures: [], pasted: [] };

/** What is written and added so far. */
function useDraft() {
  const [draft, setDraft] = useState(emptyDraft);
  const { text, pictures, pasted } = draft;
  const change = (part: Partial<Draft>): void => setDraft((before) => ({ ...before, ...part }));
  const add = async (files: FileList | null | undefined): Promise<void> => {
    if (files == null || files.length === 0) return;
    const read = await readPictures([...files], pictures);
    setDraft((before) => ({ ...before, pictures: [...before.pictures, ...read.pictures] }));
    for (const sentence of read.refused) toast(sentence, "failed");
  };
  const paste = (event: ClipboardEvent): void => {
    const words = event.clipboardData?.getData("text/plain") ?? "";
    if (words.length <= pastedMaxLength) return void add(event.clipboardData?.files);
    event.preventDefault();
    change({ pasted: [...pasted, words] });
  };
  const isEmpty = text.trim() === "" && pictures.length === 0 && pasted.length === 0;
  return { value: { ...draft, isEmpty }, change, add, paste, clear: () => setDraft(emptyDraft) };
}

type PastedProps = Readonly<{ texts: readonly string[]; onRemove: (index: number) => void }>;

const Pasted = ({ texts, onRemove }: PastedProps): VNode | null =>
  texts.length === 0 ? null : (
    <ul class="pasted">
      {texts.map((text, index) => (
        <li key={index} class="badge">
          {t("play.pasted", { count: text.length })}
          <IconButton icon="close" size={13} label={t("play.remove_pasted")} onClick={() => onRemove(index)} />
        </li>
      ))}
    </ul>
  );

type AddFilesProps = Readonly<{ onFiles: (files: FileList | null) => void }>;

function AddFiles({ onFiles }: AddFilesProps): VNode {
  const chooser = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton
        icon="clip"
        label={t("play.add_files")}
        title={t("play.add_files_about")}
        onClick={() => chooser.current?.click()}
      />
      <input
        ref={chooser}
        type="file"
        multiple
        hidden
        onChange={(event) => {
          onFiles(event.currentTarget.files);
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}

type RoundButtonProps = Readonly<{ streaming: boolean; disabled: boolean; onStop: () => void }>;

/** Two buttons, by their keys: when Stop leaves the page with the focus, the focus goes to the text (kept-focus.ts). */
const RoundButton = ({ streaming, disabled, onStop }: RoundButtonProps): VNode =>
  streaming ? (
    <button
      key="stop"
      type="button"
      class="round-button"
      aria-label={t("play.stop")}
      title={t("play.stop")}
      onClick={onStop}
    >
      <Icon name="stop" />
    </button>
  ) : (
    <button
      key="send"
      type="submit"
      class="round-button"
      aria-label={t("play.send")}
      title={t("play.send_about")}
      disabled={disabled}
    >
      <Icon name="send" />
    </button>
  );
