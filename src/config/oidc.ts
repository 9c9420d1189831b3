// The table [oidc]: sign-in with an identity provider, and who of its people may come in as what.
import { anyText, endpoint, listOf, mapped, names, text, textTable } from "./kinds.ts";
import { key, required, secret, table, textOrVariable } from "./rows.ts";

const domains = () =>
  mapped(listOf(anyText(), 'a list of domains such as "example.com"'), (written, place) =>
    written.map((domain, index) => {
      const isDomain = URL.canParse(`http://${domain}`) && new URL(`http://${domain}`).host === domain.toLowerCase();
      if (!isDomain) place.at(index).mustBe('a domain such as "example.com"', domain);
      return domain.toLowerCase();
    }),
  );
const groups = () => listOf(anyText(), "a list of groups");
const claim = () => text("the name of a claim");
const noOne: readonly string[] = [];
const noTeams: Readonly<Record<string, string>> = {};

export const oidcTable = table(
  {
    issuer: required("issuer", endpoint(), "The provider's issuer, exactly as the provider writes it."),
    clientId: textOrVariable("client_id", { about: "This server's id at the provider." }),
    /** Null: a public client, which is protected by PKCE alone. */
    clientSecret: secret("client_secret", { about: "This server's secret at the provider.", shown: "a public client" }),
    name: key("name", text("a name"), {
      about: "The provider's name on the button.",
      otherwise: null,
      shown: "the issuer's host",
    }),
    scopes: key("scopes", names("scopes"), {
      about: "Scopes to ask for; some providers send groups only if `groups` is among them.",
      otherwise: ["openid", "email", "profile"] as readonly string[],
      shown: "openid, email, profile",
    }),
    allowedDomains: key("allowed_domains", domains(), {
      about: "E-mail domains whose people may sign in.",
      otherwise: noOne,
      shown: "all",
    }),
    allowedGroups: key("allowed_groups", groups(), {
      about: "Groups whose people may sign in: one of them is enough.",
      otherwise: noOne,
      shown: "all",
    }),
    groupsClaim: key("groups_claim", claim(), {
      about: "The claim that lists a person's groups; `a.b` is `b` in `a`.",
      otherwise: "groups",
    }),
    plan: key("plan", text("the id of a plan"), {
      about: "The plan of new accounts.",
      otherwise: null,
      shown: "the first",
    }),
    planClaim: key("plan_claim", claim(), {
      about: "The claim that names a person's plan, at each sign-in.",
      otherwise: null,
      shown: "`plan`, at the first sign-in",
    }),
    operatorGroups: key("operator_groups", groups(), {
      about: "Groups whose people are operators, decided at each sign-in.",
      otherwise: noOne,
      shown: "operators are made by commands",
    }),
    teamGroups: key("team_groups", textTable('a table of teams by groups such as "lab-people" = "research"'), {
      about: "Groups whose people are members of a team, decided at each sign-in; others leave it.",
      otherwise: noTeams,
      shown: "members are added by hand",
    }),
    operatorClaim: key("operator_claim", claim(), {
      about: "The claim that is `true` for operators, decided at each sign-in.",
      otherwise: null,
      shown: "as above",
    }),
  },
  ({ clientId, name, ...oidc }, place, given) => {
    if (!("client_id" in given || "client_id_env" in given)) {
      place.at("client_id").fault("is missing: sign-in needs client_id or client_id_env");
    }
    const issuer = URL.parse(oidc.issuer);
    if (issuer !== null && issuer.search + issuer.hash !== "") {
      place.at("issuer").mustBe("an address without query and fragment", oidc.issuer);
    }
    if (!oidc.scopes.includes("openid")) place.at("scopes").fault('must have "openid" among them');
    return { ...oidc, clientId: clientId ?? "", name: name ?? issuer?.host ?? "" };
  },
);
