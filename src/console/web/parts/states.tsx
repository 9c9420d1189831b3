// What a page shows while it loads, when it is empty, and when something went wrong.
import type { ComponentChildren, VNode } from "preact";
import type { Resource } from "../resource.ts";
import { Icon, type IconName } from "./icons.tsx";
import { Button } from "./button.tsx";
import { t } from "../texts.ts";

export const Loading = ({ lines = 4 }: { lines?: number }): VNode => (
  <div class="loading" role="status" aria-label={t("common.loading")}>
    {Array.from({ length: lines }, (_, line) => (
      <div key={line} class="shimmer" />
    ))}
  </div>
);

type EmptyProps = Readonly<{ icon: IconName; title: string; children?: ComponentChildren }>;

export const Empty = ({ icon, title, children }: EmptyProps): VNode => (
  <div class="empty">
    <Icon name={icon} size={26} />
    <p class="empty-title">{title}</p>
    {children !== undefined && <div class="quiet">{children}</div>}
  </div>
);

export const Failure = ({ message, onRetry }: { message: string; onRetry: () => void }): VNode => (
  <div class="failure" role="alert">
    <Icon name="warning" />
    <p>{message}</p>
    <Button caption={t("common.try_again")} class="button small" onClick={onRetry} />
  </div>
);

type LoadedProps<Value> = Readonly<{
  resource: Resource<Value>;
  lines?: number;
  children: (value: Value) => ComponentChildren;
}>;

/** There is neither a value nor an error yet: anything drawn below would move when one arrives. */
export const isFirstLoad = ({ value, error }: Resource<unknown>): boolean => value === null && error === null;

/** Draws the value once it is there; after a failed reload, the error stands above the old value. */
export function Loaded<Value>({ resource, lines, children }: LoadedProps<Value>): VNode {
  const { value, error, loading, reload } = resource;
  return (
    <>
      {error !== null && <Failure message={error} onRetry={reload} />}
      {value !== null && <div aria-busy={loading}>{children(value)}</div>}
      {value === null && error === null && <Loading lines={lines} />}
    </>
  );
}
