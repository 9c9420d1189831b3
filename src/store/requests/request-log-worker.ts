// The Worker that owns the request log: neither its writes nor its searches are in the way of a stream or the journal.
import { host } from "../../core/workers.ts";
import { openRequestLog } from "./open-request-log.ts";

declare const self: Worker;

host(self, openRequestLog);
