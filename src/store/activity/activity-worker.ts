// The Worker that owns the activity file: neither its writes nor its queries are in the way of a stream or the journal.
import { host } from "../../core/workers.ts";
import { openActivity } from "./open-activity.ts";

declare const self: Worker;

host(self, openActivity);
