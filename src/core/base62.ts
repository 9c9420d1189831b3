// The 62 digits of ids and keys, which every client takes in a header, an address and a file name.
export const base62Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
