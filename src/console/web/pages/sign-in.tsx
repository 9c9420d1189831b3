// Sign-in, and sign-up where the server allows it; a new account's key is shown here once.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { CreatedAccount, Session, SignIn, SignUp } from "../../api.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Field, FormError } from "../parts/field.tsx";
import { Mark } from "../parts/icons.tsx";
import { ThemeChoice } from "../parts/theme-choice.tsx";
import { post } from "../request.ts";
import { useAction } from "../resource.ts";
import { navigate, place } from "../route.ts";
import { account, become, loadSession, session } from "../session.ts";

const passwordMinLength = 8;

export function SignInPage(): VNode {
  const [created, setCreated] = useState<CreatedAccount | null>(null);
  const wantsNew = place.value.query.get("new") !== null && session.value?.sign_up === true;
  const signedInAlready = wantsNew && account.value !== null && created === null;
  useEffect(() => {
    if (signedInAlready) navigate("/", { replace: true });
  }, [signedInAlready]);
  const title = created !== null ? "Your API key" : wantsNew ? "Create an account" : "Sign in";
  useEffect(() => {
    document.title = `${title} · Tollgate`;
  }, [title]);
  return (
    <div class="door">
      <main class="door-box">
        <div class="door-brand">
          <Mark size={40} />
          <h1>{created !== null ? "Welcome to Tollgate" : wantsNew ? "Create an account" : "Sign in to Tollgate"}</h1>
          <p class="quiet">One address, one key, one balance for language models</p>
        </div>
        {created !== null ? (
          <FirstKey created={created} />
        ) : (
          <CredentialsForm key={String(wantsNew)} isNew={wantsNew} onCreated={setCreated} />
        )}
        {created === null && session.value?.sign_up === true && (
          <p class="door-other">
            {wantsNew ? "Have an account already?" : "New here?"}{" "}
            <a href={wantsNew ? "/sign-in" : "/sign-in?new"}>{wantsNew ? "Sign in" : "Create an account"}</a>
          </p>
        )}
      </main>
      <footer class="door-foot">
        <ThemeChoice />
      </footer>
    </div>
  );
}

type CredentialsProps = Readonly<{ isNew: boolean; onCreated: (created: CreatedAccount) => void }>;

function CredentialsForm({ isNew, onCreated }: CredentialsProps): VNode {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const action = useAction();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void action.run(async () => {
      if (!isNew) return become(await post<Session, SignIn>("/sign-in", { email, password }));
      const created = await post<CreatedAccount, SignUp>("/sign-up", { email, password });
      onCreated(created);
      await loadSession();
    });
  };
  return (
    <form class="card stack" onSubmit={submit}>
      <Field label="E-mail">
        {(control) => (
          <input
            {...control}
            type="text"
            inputMode="email"
            autocomplete="username"
            autocapitalize="none"
            spellcheck={false}
            required
            autofocus
            value={email}
            onInput={(event) => setEmail(event.currentTarget.value)}
          />
        )}
      </Field>
      <Field label="Password" hint={isNew ? `At least ${passwordMinLength} characters` : undefined}>
        {(control) => (
          <input
            {...control}
            type="password"
            autocomplete={isNew ? "new-password" : "current-password"}
            required
            minLength={isNew ? passwordMinLength : undefined}
            value={password}
            onInput={(event) => setPassword(event.currentTarget.value)}
          />
        )}
      </Field>
      <FormError message={action.error} />
      <button type="submit" class="button primary block" aria-busy={action.busy} disabled={action.busy}>
        {isNew ? "Create account" : "Sign in"}
      </button>
    </form>
  );
}

const FirstKey = ({ created }: { created: CreatedAccount }): VNode => (
  <div class="card stack">
    <p>
      This is the key of <strong>{created.email}</strong>. It is shown <strong>this once</strong>: keep it where you
      keep your passwords.
    </p>
    <div class="secret">
      <code>{created.api_key}</code>
      <CopyButton text={created.api_key} label="Copy the API key" />
    </div>
    <a class="button primary block" href="/">
      I saved it, continue
    </a>
  </div>
);
