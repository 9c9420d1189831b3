// Data that a page fetches when it is shown: loading, then the value or an error.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "./request.ts";

export type Resource<Value> = Readonly<{
  /** The newest value, kept while the next one loads; null before the first. */
  value: Value | null;
  error: string | null;
  loading: boolean;
  reload(): void;
  replace(value: Value): void;
}>;

/** Fetches at first and whenever `key` changes. Outdated answers are dropped. */
export function useResource<Value>(fetchValue: () => Promise<Value>, key: string): Resource<Value> {
  const [state, setState] = useState<{ value: Value | null; error: string | null; loading: boolean }>({
    value: null,
    error: null,
    loading: true,
  });
  const question = useRef(0);
  const latest = useRef(fetchValue);
  latest.current = fetchValue;
  const reload = useCallback(() => {
    const asked = ++question.current;
    setState(({ value }) => ({ value, error: null, loading: true }));
    latest.current().then(
      (value) => asked === question.current && setState({ value, error: null, loading: false }),
      (error: unknown) =>
        asked === question.current && setState(({ value }) => ({ value, error: messageOf(error), loading: false })),
    );
  }, []);
  const replace = useCallback((value: Value) => {
    question.current++;
    setState({ value, error: null, loading: false });
  }, []);
  useEffect(reload, [key]);
  useEffect(
    () => () => {
      question.current++; // drops an answer for a page that is gone
    },
    [],
  );
  return { ...state, reload, replace };
}

/** Acts at this interval; null: not now. */
export function useEvery(intervalMs: number | null, act: () => void): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    if (intervalMs === null) return;
    const timer = setInterval(() => latest.current(), intervalMs);
    return () => clearInterval(timer);
  }, [intervalMs]);
}

export type Action = Readonly<{
  busy: boolean;
  error: string | null;
  /** Runs once at a time; resolves to true if it succeeded. */
  run(act: () => Promise<void>): Promise<boolean>;
}>;

/** A change by the user: its button is busy until the answer, and an error is shown beside it. */
export function useAction(): Action {
  const [state, setState] = useState<{ busy: boolean; error: string | null }>({ busy: false, error: null });
  const busy = useRef(false);
  return {
    ...state,
    async run(act) {
      if (busy.current) return false;
      busy.current = true;
      setState({ busy: true, error: null });
      try {
        await act();
        setState({ busy: false, error: null });
        return true;
      } catch (error) {
        setState({ busy: false, error: messageOf(error) });
        return false;
      } finally {
        busy.current = false;
      }
    },
  };
}
