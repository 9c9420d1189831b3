// Turns an MCP server's answer to a call into text for a model.
import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/client";
import type { ToolOutcome } from "../owned-tool.ts";

export const mcpResultTextMaxLength = 100_000;

/** Joins texts, names everything else, and cuts what is too long. */
export function outcomeOf({ content, structuredContent, isError }: CallToolResult): ToolOutcome {
  const texts = content.map(textOf);
  // Servers should repeat it as text, as the protocol asks; some do not.
  if (texts.length === 0 && structuredContent !== undefined) texts.push(JSON.stringify(structuredContent));
  return { text: bounded(texts.join("\n\n")), failed: isError === true, sources: [] };
}

function textOf(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.type} ${block.mimeType}, ${bytesOf(block.data)} bytes, is not shown]`;
    case "resource_link":
      return `[resource ${block.name}: ${block.uri}]`;
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return `[resource ${resource.uri}]\n${resource.text}`;
      const type = resource.mimeType === undefined ? "" : `${resource.mimeType}, `;
      return `[resource ${resource.uri}, ${type}${bytesOf(resource.blob)} bytes, is not shown]`;
    }
    default:
      return block satisfies never;
  }
}

const bytesOf = (base64: string): number => {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return Math.floor(((base64.length - padding) * 3) / 4);
};

function bounded(text: string): string {
  if (text.length <= mcpResultTextMaxLength) return text;
  // Keeps surrogate pairs whole.
  return `${text.slice(0, mcpResultTextMaxLength).toWellFormed()}\n[cut off: ${text.length} characters in all]`;
}
