import { join } from 'node:path';
import qrcode from 'qrcode-generator';
import { z } from 'zod';
import { type Api, createApi } from '../harness/api.ts';
import { createPerson } from '../harness/governance.ts';
import { HaipWallet, typeCode } from '../harness/haip-wallet.ts';
import { issueCertificate } from '../harness/issued-certificate.ts';
import { createIssuingOrganization, type IssuingOrganization } from '../harness/issuing-organization.ts';
import { signIn } from '../harness/journey.ts';
import { type HeldCredential, Openid4vcWallet } from '../harness/openid4vc-wallet.ts';
import { Openid4vpWallet } from '../harness/openid4vp-wallet.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import type { Steps } from './steps.ts';

const requestSchema = z.object({ requestId: z.string(), authorizationRequestUri: z.string() });
const tokenSchema = z.object({ access_token: z.string() });
const heldSchema = z.object({ issuerTrusted: z.boolean(), claimNames: z.array(z.string()) });
const resolvedSchema = z.object({
  verifierHost: z.string(),
  verifierAuthState: z.string(),
  matches: z.array(z.object({ candidates: z.array(z.object({ disclosableClaims: z.array(z.string()) })) })),
});
const resultSchema = z.object({
  state: z.string(),
  result: z.object({
    verifiedClaims: z.record(z.string(), z.unknown()).nullable(),
    errors: z.array(z.object({ code: z.string() })),
    trust: z
      .object({
        decision: z.string(),
        evidence: z.array(z.object({ kind: z.string(), vouched: z.boolean() })),
      })
      .nullable(),
  }),
});

const claims = {
  permitNumber: 'P-17',
  applicant: 'Ada Example',
  street: 'Main street 1',
  town: 'Demoville',
  area: 620,
  floors: 2,
  use: 'Workshop',
  validFrom: '2026-12-01',
  validUntil: '2028-12-01',
  office: 'Planning office',
};
const asked = ['permitNumber', 'area'];

/** The issuing organisation, on one installation. */
interface City extends IssuingOrganization {
  readonly api: Api;
}

/** A credential for a wallet of another maker, shown to a verifier, suspended and revoked; and once more in haip-1.0. */
export async function credentials(
  steps: Steps,
  {
    dataDir,
    ...stage
  }: { readonly api: Api; readonly token: string; readonly system: LocalSystem; readonly dataDir: string },
): Promise<void> {
  await takeAndPresent(steps, stage);
  await steps.run('once more in the profile haip-1.0', async () => [await highAssurance(dataDir), undefined]);
}

async function takeAndPresent(
  steps: Steps,
  { api, token, system }: { readonly api: Api; readonly token: string; readonly system: LocalSystem },
): Promise<void> {
  const city = await steps.run('enrol a certificate of the city', async () => {
    const organization = await createIssuingOrganization({ api, token: () => token, state: system.state });
    const { subjectDn, notAfter } = organization.certificate;
    return [`${subjectDn} until ${notAfter.slice(0, 10)}`, { ...organization, api }];
  });
  const offer = await steps.run('offer a permit of ten claims', async () => {
    const made = await city.offer({ claims, txCode: { length: 6 } });
    return [`transaction code ${made.txCode}\n${drawCode(made.credentialOfferReferenceUri)}`, made];
  });
  const held = await steps.run('take it with @openid4vc/openid4vci: code, DPoP, proof of a key', async () => {
    const [taken] = await new Openid4vcWallet().take(offer.credentialOfferReferenceUri, {
      txCode: offer.txCode ?? '',
      dpop: true,
    });
    if (taken === undefined) throw new Error('the wallet got no credential');
    return [`SD-JWT VC of ${taken.compact.length} characters`, taken];
  });
  await steps.run('keep it as a citizen, who checks what a verifier asks', async () => [
    await keepAndCheck(city, token, held),
    undefined,
  ]);
  await steps.run('ask for two of its claims with @openid4vc/openid4vp', async () => {
    const { state, result } = await present(city, held);
    const vouching = result.trust?.evidence.filter(({ vouched }) => vouched).map(({ kind }) => kind) ?? [];
    if (state !== 'Verified') throw new Error(JSON.stringify(result.errors));
    const shown = Object.entries(result.verifiedClaims ?? {}).map(
      ([name, value]) => `${name} ${String(value)}`,
    );
    return [`${shown.join(', ')}; ${result.trust?.decision} by ${vouching.join()}`, undefined];
  });
  await steps.run('suspend it, reinstate it, revoke it', async () => {
    const [id = ''] = await city.credentialIds(offer.offerId);
    const seen: string[] = [];
    for (const verb of ['suspend', 'reinstate', 'revoke'] as const) {
      await city.change(id, verb);
      const { state: verdict, result } = await present(city, held);
      seen.push(result.errors[0]?.code ?? verdict);
    }
    const expected = 'STATUS_SUSPENDED, Verified, STATUS_REVOKED';
    if (seen.join(', ') !== expected) throw new Error(`presented: ${seen.join(', ')}`);
    return [`presented each time: ${expected}`, undefined];
  });
}

/** The app of a citizen stores the credential in their wallet, and reads a request before it answers. */
async function keepAndCheck(city: City, root: string, held: HeldCredential): Promise<string> {
  const { api } = city;
  const organization = { id: city.organizationId, subdomain: city.subdomain };
  const { email, password, wallet } = await createPerson(api, root, organization, {
    name: 'citizen',
    role: 'User',
    keyType: 'NISTP256',
  });
  const account = { email, password, organizationSubdomain: city.subdomain, tier: 'consumer' };
  const signedIn = await api.expect(200, 'POST', '/api/auth/login', { json: account });
  const token = tokenSchema.parse(signedIn.body).access_token;
  const path = `/api/v1/wallets/${wallet.walletAddress}/credentials`;
  const stored = await api.expect(201, 'POST', path, { token, json: { credential: held.compact } });
  const { issuerTrusted, claimNames } = heldSchema.parse(stored.body);
  const { authorizationRequestUri: requestUri } = await ask(city);
  const resolve = '/api/v1/wallet/presentations/resolve-request';
  const resolved = await api.expect(200, 'POST', resolve, { token, json: { requestUri } });
  const { verifierHost, verifierAuthState, matches } = resolvedSchema.parse(resolved.body);
  const [candidate] = matches[0]?.candidates ?? [];
  if (!issuerTrusted || candidate === undefined) throw new Error('the credential answers nothing');
  const asks = candidate.disclosableClaims.join(' and ');
  return `${claimNames.length} claims, sealed; ${verifierHost} (${verifierAuthState}) asks for ${asks}`;
}

/** Another installation in the strict profile: a pushed request, the code of the person, an encrypted answer. */
async function highAssurance(dataDir: string): Promise<string> {
  const maker = await issueCertificate(dataDir, 'maker', 'wallet.example');
  const verifier = await issueCertificate(dataDir, 'verifier', 'localhost');
  const env = {
    Haip__Profile: 'haip-1.0',
    Haip__AttestationAuthorities: maker.authorityFile,
    Haip__VerifierCertificate: verifier.bundleFile,
  };
  const system = await startSystem({ dataDir: join(dataDir, 'haip'), env });
  try {
    const api = createApi(system.state.gatewayUrl);
    const { access_token: token } = await signIn(api, system.state);
    const organization = await createIssuingOrganization({ api, token: () => token, state: system.state });
    const offer = await organization.offer({ claims, txCode: { length: 6 } });
    const { credentialOfferReferenceUri, txCode = '' } = offer;
    const held = await new HaipWallet(maker).take(credentialOfferReferenceUri, typeCode(txCode));
    const { state } = await present({ ...organization, api }, held);
    if (state !== 'Verified') throw new Error(`the presentation is ${state}`);
    return 'an attested wallet: pushed request, transaction code, DPoP, encrypted answer; Verified';
  } finally {
    await system.stop();
  }
}

async function ask({ api, administrator: { token } }: City) {
  const json = {
    credentialType: 'urn:platform:credential:site-permit',
    requiredClaims: asked,
    responseMode: 'direct_post.jwt',
  };
  const created = await api.expect(201, 'POST', '/api/v1/verifier/requests', { token, json });
  return requestSchema.parse(created.body);
}

async function present(city: City, held: HeldCredential) {
  const { requestId, authorizationRequestUri } = await ask(city);
  const wallet = new Openid4vpWallet();
  const answer = await wallet.answer(await wallet.open(authorizationRequestUri), 'credential', held, asked);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  const path = `/api/v1/verifier/requests/${requestId}/result`;
  const { token } = city.administrator;
  return resultSchema.parse((await city.api.expect(200, 'GET', path, { token })).body);
}

/** A QR code of two rows a line, with its quiet zone. */
function drawCode(text: string): string {
  const code = qrcode(0, 'L');
  code.addData(text);
  code.make();
  const quiet = 2;
  const size = code.getModuleCount() + 2 * quiet;
  const isDark = (row: number, column: number) => {
    const [y, x] = [row - quiet, column - quiet];
    const isInside = y >= 0 && x >= 0 && y < code.getModuleCount() && x < code.getModuleCount();
    return isInside && code.isDark(y, x);
  };
  // Light is drawn, because terminals are mostly dark.
  const glyph = (top: boolean, bottom: boolean) => (top ? (bottom ? ' ' : '▄') : bottom ? '▀' : '█');
  const lines: string[] = [];
  for (let row = 0; row < size; row += 2) {
    const cells = Array.from({ length: size }, (_, column) =>
      glyph(isDark(row, column), isDark(row + 1, column)),
    );
    lines.push(`    ${cells.join('')}`);
  }
  return lines.join('\n');
}
