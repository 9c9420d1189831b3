// Pictures that are sent along. They are read from files and drawn small on a canvas, so that no address is ever
// loaded.
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "../../parts/icons.tsx";
import type { Picture } from "./conversation.ts";

const types: readonly string[] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
/** Together with the text a request may have 32 MiB, and base64 is a third longer than the file. */
const fileMaxBytes = 8 * 1024 * 1024;
const thumbPixels = 168;

export const pictureTypes = types.join(",");

/** Reads the files that are pictures; the sentences say why others were left out. */
export async function readPictures(files: readonly File[]): Promise<{ pictures: Picture[]; refused: string[] }> {
  const pictures: Picture[] = [];
  const refused: string[] = [];
  for (const file of files) {
    if (!types.includes(file.type)) refused.push(`${file.name} is not a PNG, JPEG, WebP or GIF.`);
    else if (file.size > fileMaxBytes) refused.push(`${file.name} is larger than 8 MiB.`);
    else pictures.push(await readPicture(file, file.name));
  }
  return { pictures, refused };
}

export const readPicture = async (file: Blob, name: string): Promise<Picture> => ({
  name,
  type: file.type,
  base64: await base64Of(file),
  file,
});

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
          <Thumb picture={picture} />
          {onRemove !== undefined && (
            <button
              type="button"
              class="icon-button"
              aria-label={`Remove ${picture.name}`}
              onClick={() => onRemove(picture)}
            >
              <Icon name="close" size={13} />
            </button>
          )}
        </div>
      ))}
    </div>
  );

function Thumb({ picture }: { picture: Picture }): VNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    // A file that only calls itself a picture stays an empty square; the server says what is wrong with it.
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
