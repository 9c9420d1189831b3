// Makes a command of a verb.
import type { TSchema } from "@sinclair/typebox";
import type { Verb } from "../office/verb.ts";
import { type Command, type Flag, folderFlags } from "./command.ts";
import { perform } from "./perform.ts";
import { flagOf, inputOf, placeholderOf, tell } from "./verb-input.ts";
import { ways } from "./ways.ts";

export function commandOf(verb: Verb): Command {
  const { name, summary, details, words, input } = verb;
  const way = ways[name];
  const fields = Object.entries<TSchema>(input.properties).filter(([field]) => !words.includes(field));
  return {
    name,
    summary,
    details,
    words: words.map((field) => ({
      name: placeholderOf(input.properties[field]!),
      help: helpOf(input.properties[field]!),
    })),
    flags: {
      ...Object.fromEntries(
        fields.flatMap(([field, schema]) => flagsOf(field, schema, input.required?.includes(field))),
      ),
      ...(verb.warning === undefined ? {} : { yes: { type: "boolean", help: "Do it." } }),
      ...way?.flags,
      ...folderFlags,
    },
    async run(invocation) {
      if (way !== undefined) return (await way.load()).default(invocation);
      const asked = inputOf(verb, invocation);
      return tell(invocation, verb, asked, await perform(invocation, verb, asked));
    },
  };
}

function flagsOf(field: string, schema: TSchema, isRequired = false): readonly (readonly [string, Flag])[] {
  const flag = flagOf(field, schema);
  if (flag === null) return [];
  const help = helpOf(schema);
  if (schema["type"] !== "boolean")
    return [
      [
        flag,
        { type: "string", multiple: schema["repeats"] === true, placeholder: placeholderOf(schema), isRequired, help },
      ],
    ];
  const opposite = [`no-${flag}`, { type: "boolean", help: `Not --${flag}.` }] as const;
  return [[flag, { type: "boolean", help }], ...(schema["negatable"] === true ? [opposite] : [])];
}

const helpOf = ({ description }: TSchema): string => description ?? "";
