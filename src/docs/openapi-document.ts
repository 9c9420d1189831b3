// The parts of an OpenAPI 3.1 description that our description uses and the reference page reads.

/** JSON Schema (2020-12), as far as the description uses it. */
export type JsonSchema = Readonly<{
  $ref?: string;
  type?: string | readonly string[];
  title?: string;
  description?: string;
  enum?: readonly (string | number | boolean | null)[];
  const?: string | number | boolean | null;
  properties?: Readonly<Record<string, JsonSchema>>;
  required?: readonly string[];
  additionalProperties?: boolean | JsonSchema;
  items?: JsonSchema;
  anyOf?: readonly JsonSchema[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  default?: unknown;
  examples?: readonly unknown[];
}>;

export type MediaType = Readonly<{
  schema: JsonSchema;
  examples?: Readonly<Record<string, Readonly<{ value: unknown }>>>;
}>;

export type Reply = Readonly<{
  description: string;
  headers?: Readonly<Record<string, Readonly<{ description: string; schema: JsonSchema }>>>;
  content?: Readonly<Record<string, MediaType>>;
}>;

export type Parameter = Readonly<{
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  description: string;
  schema: JsonSchema;
}>;

/** A request of an endpoint in one language, ready to run with the key in `TOLLGATE_KEY`. */
export type CodeSample = Readonly<{ lang: "Shell" | "JavaScript" | "Python"; label: string; source: string }>;

export type Operation = Readonly<{
  operationId: string;
  tags: readonly [string];
  summary: string;
  description: string;
  parameters?: readonly Parameter[];
  requestBody?: Readonly<{ required: boolean; content: Readonly<Record<string, MediaType>> }>;
  responses: Readonly<Record<string, Reply>>;
  security?: readonly Readonly<Record<string, readonly string[]>>[];
  "x-codeSamples"?: readonly CodeSample[];
  /** The events of the streamed form, if any: name -> its meaning and the schema of its data. */
  "x-events"?: Readonly<Record<string, Readonly<{ description: string; schema: JsonSchema }>>>;
}>;

export type Method = "get" | "post" | "delete";

export type OpenApiDocument = Readonly<{
  openapi: "3.1.0";
  info: Readonly<{
    title: string;
    version: string;
    summary: string;
    description: string;
    license: Readonly<{ name: string; identifier: string }>;
  }>;
  servers: readonly Readonly<{ url: string }>[];
  tags: readonly Readonly<{ name: string; description: string }>[];
  security: readonly Readonly<Record<string, readonly string[]>>[];
  paths: Readonly<Record<string, Readonly<Partial<Record<Method, Operation>>>>>;
  components: Readonly<{
    schemas: Readonly<Record<string, JsonSchema>>;
    securitySchemes: Readonly<Record<string, Readonly<Record<string, string>>>>;
  }>;
}>;
