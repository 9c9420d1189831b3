// The 62 digits of ids and keys. Every client accepts them in headers, addresses and file names.
export const base62Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
