// Which part of a system text the model gets. Claude Code's first line is a billing header with a hash of the first
// prompt: with it, no two conversations would share a prefix in a node's cache.
const billingHeader = /^x-anthropic-billing-header[^\n]*\n*/;

export const systemText = (text: string): string => text.replace(billingHeader, "");
