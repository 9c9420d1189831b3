// A text as a file of TOML has it.

/** JSON's escapes are TOML's; DEL and what follows it may not stand in a file of either kind as it is. */
export const tomlText = (text: string): string =>
  JSON.stringify(text).replaceAll(
    /[\u007f-\u009f\u2028\u2029]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
