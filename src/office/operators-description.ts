// The OpenAPI document of the operators' API, made from the verbs.
import type { TObject, TSchema } from "@sinclair/typebox";
import { version } from "../../package.json" with { type: "json" };
import { allVerbs } from "./registry.ts";
import { isForApi, operatorsApiPath, type Verb } from "./verb.ts";

export type OperatorsDescription = Awaited<ReturnType<typeof describeOperatorsApi>>;

const error = { content: { "application/json": { schema: { $ref: "#/components/schemas/OperatorsError" } } } };
const responses = {
  "200": { description: "The result.", content: { "application/json": { schema: {} } } },
  "400": { description: "The input is wrong, and `field` says where; or it cannot be done.", ...error },
  "401": { description: "The token is missing, wrong, expired or revoked.", ...error },
  "403": { description: "The scope of the token does not allow it.", ...error },
  "405": { description: "The method is not one that the verb takes; `Allow` names those.", ...error },
  "409": { description: "Another account has the e-mail.", ...error },
  "413": { description: "The body is too large.", ...error },
  "500": { description: "It failed for a reason of ours, which the log has.", ...error },
  "503": { description: "The ledger cannot be read or written; nothing was done.", ...error },
};

export async function describeOperatorsApi(url: string) {
  const groups = (await allVerbs()).map(([name, verbs]) => ({ name, verbs: verbs.filter(isForApi) }));
  const paths = groups.flatMap(({ name, verbs }) =>
    verbs.map((verb) => [`${operatorsApiPath}/${verb.name.replaceAll(" ", "/")}`, operationsOf(verb, name)] as const),
  );
  return {
    openapi: "3.1.0" as const,
    info: {
      title: "Tollgate operators'",
      version,
      summary: "What the commands do, for programs.",
      description:
        "What the commands do, for programs. `tollgate tokens create --name NAME --scope read` makes a token and shows it once; it goes into `Authorization: Bearer`. The scope `read` lists and shows, `people` also changes accounts and keys, `all` also nodes and the server. The audit log names the token.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url }],
    tags: groups.map(({ name }) => ({ name, description: "" })),
    security: [{ token: [] }],
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: {
        OperatorsError: {
          type: "object",
          required: ["error"],
          properties: {
            error: {
              type: "object",
              required: ["type", "message"],
              properties: { type: { type: "string" }, message: { type: "string" }, field: { type: "string" } },
            },
          },
        },
      },
    },
  };
}

function operationsOf({ name, summary, details, input, scope }: Verb, heading: string) {
  const needs = `Needs a token of the scope \`${scope}\`.`;
  const operationId = name.replaceAll(/[ -](\w)/g, (_, letter: string) => letter.toUpperCase());
  const tags: readonly [string] = [heading];
  const shared = { tags, summary, description: details === undefined ? needs : `${details}\n\n${needs}`, responses };
  const post = {
    ...shared,
    operationId,
    requestBody: { required: true, content: { "application/json": { schema: plain(input) } } },
  };
  return scope === "read"
    ? { get: { ...shared, operationId: `${operationId}ByQuery`, parameters: parametersOf(input) }, post }
    : { post };
}

const parametersOf = ({ properties, required = [] }: TObject) =>
  Object.entries<TSchema>(properties).map(([name, schema]) => ({
    name,
    in: "query" as const,
    required: required.includes(name),
    description: schema.description ?? "",
    schema: plain(schema),
  }));

/** Without what TypeBox keeps for itself, which stands under symbols. */
const plain = (schema: TSchema): Readonly<Record<string, unknown>> => structuredClone(schema);
