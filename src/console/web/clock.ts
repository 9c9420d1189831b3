// The browser's clock. Nothing else reads it.

export const now = (): number => Date.now();
