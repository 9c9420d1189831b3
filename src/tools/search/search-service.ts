// A web search over HTTP: its request, and what is read of its answer.

export type ServiceRequest = Readonly<{
  url: string;
  /** The body of a POST; null: a GET. */
  body: string | null;
  headers: Readonly<Record<string, string>>;
}>;

/** A result from the service; `url` may be anything. */
export type ServiceResult = Readonly<{ title: string; url: string; text: string }>;

/** How to ask one service, and how to read its answers. */
export interface SearchService {
  request(query: string, resultsMax: number): ServiceRequest;
  /** Best first; [] for an answer without results. Throws where the answer has another form. */
  results(answer: Readonly<Record<string, unknown>>): readonly ServiceResult[];
  /** What the operator can do about this status, or null. */
  remedy(status: number): string | null;
}
