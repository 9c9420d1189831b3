// Names of columns as records have them: "key_hash" is "keyHash".
export type Camel<Name extends string> = Name extends `${infer Head}_${infer Rest}`
  ? `${Head}${Capitalize<Camel<Rest>>}`
  : Name;
export const camel = (name: string): string => name.replace(/_(.)/g, (_, first: string) => first.toUpperCase());
