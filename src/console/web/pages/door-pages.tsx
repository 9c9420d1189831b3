// The pages of links and of the identity provider: the way back from it, an invitation, a new password.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Entered, LinkShown } from "../../api/sign-in.ts";
import { fullMoment, worth } from "../format.ts";
import { EmailField, PasswordField } from "../parts/account-fields.tsx";
import { Door } from "../parts/door.tsx";
import { FormError } from "../parts/field.tsx";
import { ProviderButton } from "../parts/provider-button.tsx";
import { FirstKey } from "../parts/secret.tsx";
import { Loading } from "../parts/states.tsx";
import { pageAt } from "../pages.ts";
import { messageOf, post } from "../request.ts";
import { useAction, useResource } from "../resource.ts";
import { navigate, place } from "../route.ts";
import { account, become, loadSession, session } from "../session.ts";
import { Button } from "../parts/button.tsx";
import { rich, t } from "../texts.ts";

export const DoorPage = (): VNode => (place.value.path === "/sign-in/callback" ? <Callback /> : <LinkPage />);

/** A page of this console, never another site. */
const safe = (next: string): string => (pageAt(next) === undefined ? "/" : next);

/** Continues to the next page, or shows the key of a new account first. */
function useEntered(): [Entered | null, (entered: Entered) => void] {
  const [shown, setShown] = useState<Entered | null>(null);
  const enter = (entered: Entered): void => {
    become(entered.session);
    if (entered.api_key === null) navigate(safe(entered.next), { replace: true });
    else setShown(entered);
  };
  return [shown, enter];
}

const Welcome = ({ session: { account: made }, api_key, next }: Entered): VNode => (
  <Door title={t("sign_in.your_key")} heading={t("sign_in.welcome")}>
    <FirstKey email={made?.email ?? ""} apiKey={api_key ?? ""} next={safe(next)} />
  </Door>
);

function Callback(): VNode {
  const [entered, enter] = useEntered();
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const { search } = location;
    history.replaceState(null, "", "/sign-in/callback"); // its code works once, and must not stay in the history
    post("/provider/finish", { query: search }).then(enter, (error: unknown) => setProblem(messageOf(error)));
  }, []);
  if (entered !== null) return <Welcome {...entered} />;
  const back = account.value === null ? "/sign-in" : "/account";
  const failed = t(back === "/sign-in" ? "door.not_signed_in" : "door.failed");
  return (
    <Door title={t("sign_in.sign_in")} heading={problem === null ? t("door.signing_in") : failed}>
      {problem === null ? (
        <Loading lines={2} />
      ) : (
        <div class="card stack">
          <FormError message={problem} />
          <a class="button primary block" href={back}>
            {t(back === "/sign-in" ? "door.back_sign_in" : "door.back_account")}
          </a>
        </div>
      )}
    </Door>
  );
}

function LinkPage(): VNode {
  const [token] = useState(location.hash.slice(1));
  const [entered, enter] = useEntered();
  const link = useResource(() => post("/link", { token }), token);
  if (entered !== null) return <Welcome {...entered} />;
  const { value, error } = link;
  if (value === null) {
    const heading = t(error === null ? "door.one_moment" : "door.link_failed");
    return (
      <Door title={t("door.link")} heading={heading}>
        {error === null ? (
          <Loading lines={8} />
        ) : (
          <div class="card stack">
            <FormError message={error} />
            <a class="button block" href="/sign-in">
              {t("door.to_sign_in")}
            </a>
          </div>
        )}
      </Door>
    );
  }
  if (value.team !== null && account.value !== null) return <JoinTeam team={value.team} token={token} />;
  const isNew = value.kind === "invitation";
  const { plan, credit, team, email } = value;
  const lead = !isNew
    ? t("door.account", { email: email ?? "" })
    : team !== null
      ? t("door.invited_team", { team })
      : credit > 0
        ? t("door.invited_gift", { plan, credit, worth: worth(credit) })
        : t("door.invited", { plan });
  return (
    <Door
      title={t(isNew ? "door.invitation" : "door.new_password")}
      heading={t(isNew ? "door.join" : session.value?.passwords === false ? "sign_in.heading" : "door.set_password")}
      lead={lead}
    >
      <div class="card stack">
        {session.value?.passwords === true && <LinkForm token={token} link={value} onEntered={enter} />}
        {session.value?.passwords === true && session.value.provider !== null && <p class="or">{t("sign_in.or")}</p>}
        {session.value?.provider != null && <ProviderButton body={{ token }} primary={!session.value.passwords} />}
      </div>
      {value.team !== null && (
        <p class="door-other">{rich("door.have_account", { link: (inner) => <a href="/sign-in">{inner}</a> })}</p>
      )}
      <p class="door-other">{t("door.works_once", { time: fullMoment(value.expires_at) })}</p>
    </Door>
  );
}

function JoinTeam({ team, token }: { team: string; token: string }): VNode {
  const action = useAction();
  const join = (): void =>
    void action.run(async () => {
      await post("/teams/join", { token });
      await loadSession();
      navigate("/team", { replace: true });
    });
  return (
    <Door
      title={t("door.invitation")}
      heading={t("door.join_team", { team })}
      lead={t("door.with_account", { email: account.value?.email ?? "" })}
    >
      <div class="card stack">
        <FormError message={action.error} />
        <Button caption={t("door.join_button")} class="button primary block" busy={action.busy} onClick={join} />
      </div>
    </Door>
  );
}

type LinkFormProps = Readonly<{ token: string; link: LinkShown; onEntered: (entered: Entered) => void }>;

function LinkForm({ token, link, onEntered }: LinkFormProps): VNode {
  const [email, setEmail] = useState(link.email ?? "");
  const [password, setPassword] = useState("");
  const action = useAction();
  const isNew = link.kind === "invitation";
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void action.run(async () => {
      const chosen = isNew && link.email === null ? { email } : {};
      onEntered(await post("/link/use", { token, password, ...chosen }));
    });
  };
  return (
    <form class="stack" onSubmit={submit}>
      <EmailField value={email} onValue={setEmail} isOwn isFixed={link.email !== null} />
      <PasswordField
        label={t(isNew ? "account_fields.password" : "door.new_password")}
        value={password}
        onValue={setPassword}
        isNew
      />
      <FormError message={action.error} />
      <Button
        caption={t(isNew ? "sign_in.create_account" : "door.set_password_button")}
        type="submit"
        class="button primary block"
        busy={action.busy}
      />
    </form>
  );
}
