// Sign-in with a password or an identity provider, and sign-up if the server allows it.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { CreatedAccount } from "../../api/sign-in.ts";
import { EmailField, PasswordField } from "../parts/account-fields.tsx";
import { Door } from "../parts/door.tsx";
import { FormError } from "../parts/field.tsx";
import { ProviderButton } from "../parts/provider-button.tsx";
import { FirstKey } from "../parts/secret.tsx";
import { post } from "../request.ts";
import { useAction } from "../resource.ts";
import { navigate, place } from "../route.ts";
import { account, become, loadSession, session } from "../session.ts";
import { Button } from "../parts/button.tsx";
import { rich, t } from "../texts.ts";
import { code } from "../parts/inline.tsx";

export function SignInPage(): VNode {
  const [created, setCreated] = useState<CreatedAccount | null>(null);
  const wantsNew = place.value.query.get("new") !== null && session.value?.sign_up === true;
  const signedInAlready = wantsNew && account.value !== null && created === null;
  useEffect(() => {
    if (signedInAlready) navigate("/", { replace: true });
  }, [signedInAlready]);
  if (created !== null) {
    return (
      <Door title={t("sign_in.your_key")} heading={t("sign_in.welcome")}>
        <FirstKey email={created.email} apiKey={created.api_key} />
      </Door>
    );
  }
  const { passwords = true, provider = null, sign_up = false } = session.value ?? {};
  const { path, query } = place.value;
  const next = query.get("next") ?? (path === "/device" ? `${path}?${query}` : null);
  return (
    <Door
      title={t(wantsNew ? "sign_in.create" : "sign_in.sign_in")}
      heading={t(wantsNew ? "sign_in.create" : "sign_in.heading")}
    >
      {passwords && <CredentialsForm key={String(wantsNew)} isNew={wantsNew} onCreated={setCreated} />}
      {passwords && provider !== null && <p class="or">{t("sign_in.or")}</p>}
      {provider !== null && <ProviderButton body={next === null ? {} : { next }} primary={!passwords} />}
      {sign_up && (
        <p class="door-other">
          {t(wantsNew ? "sign_in.have_one" : "sign_in.new_here")}{" "}
          <a href={wantsNew ? "/sign-in" : "/sign-in?new"}>{t(wantsNew ? "sign_in.sign_in" : "sign_in.create")}</a>
        </p>
      )}
    </Door>
  );
}

const Forgotten = (): VNode => (session.value?.mail === true ? <ByMail /> : <ByOperator />);

const ByMail = (): VNode => (
  <p class="small-text">
    <a href="/forgotten">{t("sign_in.forgot")}</a>
  </p>
);

/** This server sends no mail. */
const ByOperator = (): VNode => (
  <details class="small-text">
    <summary>{t("sign_in.forgot")}</summary>
    <p class="quiet">
      {rich("sign_in.forgot_about", { code })}
      {session.value?.provider != null && ` ${t("sign_in.forgot_provider", { provider: session.value.provider })}`}
    </p>
  </details>
);

type CredentialsProps = Readonly<{ isNew: boolean; onCreated: (created: CreatedAccount) => void }>;

function CredentialsForm({ isNew, onCreated }: CredentialsProps): VNode {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const action = useAction();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void action.run(async () => {
      if (!isNew) return become(await post("/sign-in", { email, password }));
      const created = await post("/sign-up", { email, password });
      onCreated(created);
      await loadSession();
    });
  };
  return (
    <form class="card stack" onSubmit={submit}>
      <EmailField value={email} onValue={setEmail} isOwn hasFocus />
      <PasswordField value={password} onValue={setPassword} isNew={isNew} />
      <FormError message={action.error} />
      <Button
        caption={t(isNew ? "sign_in.create_account" : "sign_in.sign_in")}
        type="submit"
        class="button primary block"
        busy={action.busy}
      />
      {!isNew && <Forgotten />}
    </form>
  );
}
