// Chooses what to draw: the sign-in page, or the page of the address inside the shell.
import { type ComponentType, type VNode } from "preact";
import { useEffect } from "preact/hooks";
import { nameOf, type PageEntry, pageAt } from "./pages.ts";
import { OverviewPage } from "./pages/overview.tsx";
import { Mark } from "./parts/icons.tsx";
import { Page } from "./parts/page.tsx";
import { Shell } from "./parts/shell.tsx";
import { Empty, Failure, Loading } from "./parts/states.tsx";
import { Toasts } from "./parts/toasts.tsx";
import { useResource } from "./resource.ts";
import { navigate, place } from "./route.ts";
import { account, loadSession, session } from "./session.ts";
import { later, t } from "./texts.ts";

export const App = (): VNode => (
  <>
    <Content />
    <Toasts />
  </>
);

function Content(): VNode {
  const start = useResource(loadSession, "session");
  const { path, query } = place.value;
  const signedIn = account.value !== null;
  useEffect(() => {
    if (signedIn && path === "/sign-in" && query.get("new") === null) navigate(nextPath(query), { replace: true });
  }, [signedIn, path]);

  if (session.value === null) {
    return splash(start.error === null ? null : <Failure message={start.error} onRetry={start.reload} />);
  }
  if (doorPaths.includes(path)) return <LazyDoor />;
  if (mailPaths.includes(path)) return <LazyMail />;
  if (!signedIn || path === "/sign-in") return <LazySignIn />;
  const page = pageAt(path);
  if (page?.path.startsWith("/operator") === true && account.value?.operator !== true) {
    return (
      <Shell>
        <ForOperators />
      </Shell>
    );
  }
  return <Shell>{page === undefined ? <UnknownPage /> : <LazyPage key={page.path} page={page} />}</Shell>;
}

/** Of the page for those who come by a link or from an identity provider, signed in or not. */
const doorPaths = ["/sign-in/callback", "/join", "/set-password"];
const mailPaths = ["/forgotten", "/confirm-mail", "/unsubscribe"];

/** Where to go after the sign-in: a page of this console, never another site. */
function nextPath(query: URLSearchParams): string {
  const next = query.get("next") ?? "/";
  return pageAt(next) === undefined ? "/" : next;
}

/** The page where most people land comes with the first script. */
const loaded = new Map<string, ComponentType>([["/", OverviewPage]]);

type LazyProps = Readonly<{
  name: string;
  load: () => Promise<ComponentType>;
  /** Drawn meanwhile, around the error if there is one. */
  meanwhile: (failure: VNode | null) => VNode;
}>;

function Lazy({ name, load, meanwhile }: LazyProps): VNode {
  const resource = useResource(async () => {
    if (!loaded.has(name)) loaded.set(name, await load());
  }, name);
  const Drawn = loaded.get(name);
  if (Drawn !== undefined) return <Drawn />;
  if (resource.error === null) return meanwhile(null);
  // After an update of the server the old files are gone: a reload brings the new ones.
  return meanwhile(<Failure message={t("app.not_loaded")} onRetry={() => location.reload()} />);
}

const LazyPage = ({ page }: { page: PageEntry }): VNode => (
  <Lazy
    name={page.path}
    load={page.load}
    meanwhile={(failure) => <Page title={nameOf(page)}>{failure ?? <Loading />}</Page>}
  />
);

const splash = (failure: VNode | null): VNode => <div class="splash">{failure ?? <Mark size={40} />}</div>;

const LazyDoor = (): VNode => (
  <Lazy name="door" load={async () => (await later(import("./pages/door-pages.tsx"))).DoorPage} meanwhile={splash} />
);

const LazySignIn = (): VNode => (
  <Lazy name="sign-in" load={async () => (await import("./pages/sign-in.tsx")).SignInPage} meanwhile={splash} />
);

const LazyMail = (): VNode => (
  <Lazy name="mail" load={async () => (await later(import("./pages/mail-pages.tsx"))).MailPage} meanwhile={splash} />
);

const ForOperators = (): VNode => (
  <Page title={t("app.for_operators")}>
    <Empty icon="accounts" title={t("app.for_operators_about")}>
      <a href="/">{t("app.to_overview")}</a>
    </Empty>
  </Page>
);

const UnknownPage = (): VNode => (
  <Page title={t("app.nothing")}>
    <Empty icon="search" title={t("app.nothing_about")}>
      <a href="/">{t("app.to_overview")}</a>
    </Empty>
  </Page>
);
