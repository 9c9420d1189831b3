// Traces of requests, as the operator asks for them.
import { address, listOf, number, oneOf, text, whole, yesOrNo } from "./kinds.ts";
import { key, required, secret, table } from "./rows.ts";

export type TelemetryConfig = Readonly<ReturnType<typeof telemetryTable.read>>;
export const telemetryTable = table(
  {
    /** Of an OpenTelemetry collector, without /v1/traces. */
    otlpEndpoint: required("otlp_endpoint", address(), "Where traces are sent, by OTLP over HTTP."),
    otlpHeaders: secret("otlp_headers", {
      about: 'Headers for it, such as "authorization=Basic%20abc,x-scope=a", as in OTEL_EXPORTER_OTLP_HEADERS.',
      aboutVariable: "Variable that holds them instead, which keeps them out of the file.",
    }),
    otlpProtocol: key("otlp_protocol", oneOf(["http/protobuf", "http/json"]), {
      about: "The form in which they are sent, as OTEL_EXPORTER_OTLP_PROTOCOL has it.",
      otherwise: "http/protobuf",
    }),
    otlpMetrics: key("otlp_metrics", yesOrNo(), {
      about: "Metrics of generative AI (tokens, durations, first tokens) are sent there, too, once a minute.",
      otherwise: false,
    }),
    sampleRatio: key("sample_ratio", number(0, 1), {
      about: "The share of requests that are traced, if their callers do not decide.",
      otherwise: 1,
    }),
    users: key("users", oneOf(["hashed", "plain", "none"]), {
      about: "How traces name end users, or accounts by their numbers.",
      otherwise: "hashed",
    }),
    content: key("content", yesOrNo(), {
      about: "Traces have prompts and answers of requests that ask for it with `x-trace-content: true`.",
      otherwise: false,
    }),
    contentAccounts: key(
      "content_accounts",
      listOf(whole(1, Number.MAX_SAFE_INTEGER, "the number of an account"), "a list of the numbers of accounts"),
      {
        about:
          "Accounts that opted in: of all their requests, unless one says `x-trace-content: false`, and of no others.",
        otherwise: null,
        shown: "each request decides",
      },
    ),
    redact: key("redact", listOf(text("a regular expression"), "a list of regular expressions"), {
      about: "What they match in prompts and answers is replaced by `[redacted]`.",
      otherwise: [],
    }),
  },
  ({ otlpHeaders, ...telemetry }, place) => {
    for (const [index, pattern] of telemetry.redact.entries()) {
      if (patternOf(pattern) === null) place.at("redact").at(index).fault("must be a regular expression");
    }
    const headers = otlpHeaders === null ? {} : headersOf(otlpHeaders);
    if (headers === null) place.at("otlp_headers").fault('must be like "name=value,other=value", percent-encoded');
    return { ...telemetry, otlpHeaders: headers ?? {} };
  },
);

export function patternOf(pattern: string): RegExp | null {
  try {
    return new RegExp(pattern, "gu");
  } catch {
    return null;
  }
}

/** Null: not in the form of W3C Baggage, which the standard variable has. */
function headersOf(written: string): Readonly<Record<string, string>> | null {
  const headers: Record<string, string> = {};
  for (const pair of written.split(",")) {
    const at = pair.indexOf("=");
    const name = pair.slice(0, Math.max(0, at)).trim();
    if (!/^[\w!#$%&'*+.^`|~-]{1,200}$/.test(name)) return null;
    try {
      headers[name.toLowerCase()] = decodeURIComponent(pair.slice(at + 1).trim());
    } catch {
      return null;
    }
  }
  return headers;
}
