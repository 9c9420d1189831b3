// Traces of requests, as the operator asks for them.
import { address, number } from "./kinds.ts";
import { key, required, table } from "./rows.ts";

export type TelemetryConfig = Readonly<ReturnType<typeof telemetryTable.read>>;
export const telemetryTable = table(
  {
    /** Of an OpenTelemetry collector, without /v1/traces. */
    otlpEndpoint: required("otlp_endpoint", address(), "Where traces are sent, by OTLP over HTTP."),
    sampleRatio: key("sample_ratio", number(0, 1), {
      about: "The share of requests that are traced, if their callers do not decide.",
      otherwise: 1,
    }),
  },
  (telemetry) => telemetry,
);
