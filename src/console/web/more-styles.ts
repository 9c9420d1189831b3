// The styles that the first page does without.
let loading: Promise<void> | null = null;

export function loadMoreStyles(): Promise<void> {
  loading ??= load().catch((error: unknown) => {
    loading = null;
    throw error;
  });
  return loading;
}

function load(): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const href = document.querySelector<HTMLMetaElement>('meta[name="more-styles"]')!.content;
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
  link.onload = () => resolve();
  link.onerror = () => {
    link.remove();
    reject(new Error(href));
  };
  document.head.append(link);
  return promise;
}
