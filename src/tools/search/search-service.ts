// A web search over HTTP: how it is asked, and what is read of its answer.

export type ServiceRequest = Readonly<{
  url: string;
  /** Of a POST; null: a GET. */
  body: string | null;
  headers: Readonly<Record<string, string>>;
}>;

/** A result as the service gave it; `url` may be anything. */
export type ServiceResult = Readonly<{ title: string; url: string; text: string }>;

/** How one service is asked, and what its answers look like. */
export interface SearchService {
  request(query: string, resultsMax: number): ServiceRequest;
  /** Best first; [] for an answer without results. Throws where the answer has another shape. */
  results(answer: Readonly<Record<string, unknown>>): readonly ServiceResult[];
  /** What the operator can do about this status, or null. */
  remedy(status: number): string | null;
}
