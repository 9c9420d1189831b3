// Chooses a file's encoding for a client: compressed if it accepts that.

export type Forms = Readonly<{ bytes: Uint8Array; brotli: Uint8Array; gzip: Uint8Array }>;

export type ChosenForm = Readonly<{ body: Uint8Array<ArrayBuffer>; encoding: string | null }>;

/** `accepted`: the header accept-encoding, or "". */
export function chooseForm({ bytes, brotli, gzip }: Forms, accepted: string): ChosenForm {
  const taken = new Set(
    accepted
      .split(",")
      .map((each) => each.replaceAll(" ", "").toLowerCase())
      .filter((each) => !/;q=0(?:\.0*)?$/.test(each))
      .map((each) => each.split(";")[0]),
  );
  const forms = [
    ["br", brotli],
    ["gzip", gzip],
  ] as const;
  const [encoding, body] = forms.find(([name]) => taken.has(name)) ?? ([null, bytes] as const);
  return { body: body as Uint8Array<ArrayBuffer>, encoding };
}
