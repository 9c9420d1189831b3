// Pictures, PDFs and text files as attachments, read from files and drawn on a canvas: no address is ever loaded.
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { bytes as bytesText } from "../../format.ts";
import { Icon } from "../../parts/icons.tsx";
import { t } from "../../texts.ts";
import { isAudio, isImage, pdfType, type Picture, bytesOfBase64, textOfBase64, textType } from "./conversation.ts";
import { IconButton } from "../../parts/button.tsx";

const types: readonly string[] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
/** A request with its text may have 32 MiB, and base64 is a third longer than the file. */
const fileMaxBytes = 8 * 1024 * 1024;
const filesMaxBytes = 22 * 1024 * 1024;
/** PDF readers look for the mark in the first KiB. */
const pdfStartWithinBytes = 1_024;
const thumbPixels = 168;

/** Reads the files that can be sent along with those `before`; the sentences say why others cannot. */
export async function readPictures(
  files: readonly File[],
  before: readonly Picture[],
): Promise<{ pictures: Picture[]; refused: string[] }> {
  const pictures: Picture[] = [];
  const refused: string[] = [];
  for (const file of files) {
    const together = [...before, ...pictures].reduce((sum, each) => sum + each.file.size, file.size);
    const sent = file.size > fileMaxBytes ? null : await sendable(file);
    const { name } = file;
    if (file.size > fileMaxBytes) refused.push(t("play.file_too_large", { name }));
    else if (together > filesMaxBytes) refused.push(t("play.files_too_large", { name }));
    else if (file.size === 0) refused.push(t("play.file_empty", { name }));
    else if (sent === null) refused.push(t("play.file_unknown", { name }));
    else pictures.push(await readPicture(sent, file.name));
  }
  return { pictures, refused };
}

/** The file with its type by content, since systems do not know all text types. Text becomes UTF-8. */
async function sendable(file: File): Promise<Blob | null> {
  if (types.includes(file.type) || file.type.startsWith("audio/")) return file;
  const head = await file.slice(0, pdfStartWithinBytes).text();
  if (head.includes("%PDF-")) return file.slice(0, file.size, pdfType);
  const text = textOf(new Uint8Array(await file.arrayBuffer()));
  return text === null || text === "" ? null : new Blob([text], { type: textType });
}

/** UTF-8, or what the byte order mark says; the server checks more closely. */
function textOf(bytes: Uint8Array): string | null {
  const mark = `${bytes[0]} ${bytes[1]}`;
  const encoding = mark === "255 254" ? "utf-16le" : mark === "254 255" ? "utf-16be" : "utf-8";
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null; // not text
  }
}

export const readPicture = async (file: Blob, name: string): Promise<Picture> => ({
  name,
  type: file.type,
  base64: await base64Of(file),
  file,
});

export const pictureOf = (name: string, type: string, base64: string): Picture => {
  return { name, type, base64, file: new Blob([bytesOfBase64(base64)], { type }) };
};

function base64Of(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result).replace(/^[^,]*,/, "")));
    reader.addEventListener("error", () => reject(reader.error ?? new Error("the file could not be read")));
    reader.readAsDataURL(file);
  });
}

type ThumbsProps = Readonly<{ pictures: readonly Picture[]; onRemove?: (picture: Picture) => void }>;

export const Thumbs = ({ pictures, onRemove }: ThumbsProps): VNode | null =>
  pictures.length === 0 ? null : (
    <div class="thumbs">
      {pictures.map((picture, index) => (
        <div key={`${picture.name} ${index}`} class="thumb">
          {isImage(picture) ? <Thumb picture={picture} /> : <FileChip file={picture} />}
          {onRemove !== undefined && (
            <IconButton
              icon="close"
              size={13}
              label={t("play.remove", { name: picture.name })}
              onClick={() => onRemove(picture)}
            />
          )}
        </div>
      ))}
    </div>
  );

/** Its beginning, where it is text. */
const FileChip = ({ file: picture }: { file: Picture }): VNode => (
  <span class="file-chip">
    <Icon name={isAudio(picture) ? "activity" : "log"} size={20} />
    <span>
      <bdi class="break">{picture.name}</bdi>
      <span class="quiet small-text">{bytesText(picture.file.size)}</span>
      {picture.type === textType && (
        <span class="quiet small-text file-text" dir="auto">
          {textOfBase64(picture.base64.slice(0, previewBase64Length)).slice(0, previewLength)}
        </span>
      )}
    </span>
  </span>
);
const previewLength = 80;
const previewBase64Length = 440;

function Thumb({ picture }: { picture: Picture }): VNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    // An invalid picture stays an empty square; the server reports what is wrong.
    void createImageBitmap(picture.file).then(
      (bitmap) => {
        const context = canvas.current?.getContext("2d");
        const scale = Math.max(thumbPixels / bitmap.width, thumbPixels / bitmap.height);
        const [width, height] = [bitmap.width * scale, bitmap.height * scale];
        context?.drawImage(bitmap, (thumbPixels - width) / 2, (thumbPixels - height) / 2, width, height);
        bitmap.close();
      },
      () => {},
    );
  }, [picture]);
  return <canvas ref={canvas} width={thumbPixels} height={thumbPixels} role="img" aria-label={picture.name} />;
}
