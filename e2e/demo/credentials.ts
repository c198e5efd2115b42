import { join } from 'node:path';
import qrcode from 'qrcode-generator';
import { z } from 'zod';
import { type Api, createApi } from '../harness/api.ts';
import { createOrganization, createPerson } from '../harness/governance.ts';
import { HaipWallet, typeCode } from '../harness/haip-wallet.ts';
import { issueCertificate } from '../harness/issued-certificate.ts';
import { signIn } from '../harness/journey.ts';
import { type HeldCredential, Openid4vcWallet } from '../harness/openid4vc-wallet.ts';
import { Openid4vpWallet } from '../harness/openid4vp-wallet.ts';
import { organizationKeys } from '../harness/organization-keys.ts';
import { mintWithSvid } from '../harness/service-token.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import type { Steps } from './steps.ts';

const offerSchema = z.object({
  offerId: z.string(),
  credentialOfferReferenceUri: z.string(),
  txCode: z.string(),
});
const offerState = z.object({ credentialIds: z.array(z.string()) });
const requestSchema = z.object({ requestId: z.string(), authorizationRequestUri: z.string() });
const certificateSchema = z.object({ subjectDn: z.string(), notAfter: z.string() });
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

/** The issuing organisation, and the tokens of its administrator and of a service. */
interface City {
  readonly api: Api;
  readonly organizationId: string;
  readonly walletAddress: string;
  readonly administrator: string;
  readonly service: string;
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
    const { made, subject, until } = await enrolCity(api, token, system);
    return [`${subject} until ${until}`, made];
  });
  const offer = await steps.run('offer a permit of ten claims', async () => {
    const made = await offerPermit(city);
    return [`transaction code ${made.txCode}\n${drawCode(made.credentialOfferReferenceUri)}`, made];
  });
  const held = await steps.run('take it with @openid4vc/openid4vci: code, DPoP, proof of a key', async () => {
    const [taken] = await new Openid4vcWallet().take(offer.credentialOfferReferenceUri, {
      txCode: offer.txCode,
      dpop: true,
    });
    if (taken === undefined) throw new Error('the wallet got no credential');
    return [`SD-JWT VC of ${taken.compact.length} characters`, taken];
  });
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
    const state = await api.expect(200, 'GET', `/api/v1/offers/${offer.offerId}`, { token: city.service });
    const [id = ''] = offerState.parse(state.body).credentialIds;
    const seen: string[] = [];
    for (const verb of ['suspend', 'reinstate', 'revoke']) {
      const call = { token: city.administrator, json: { reason: 'demo' } };
      await api.expect(200, 'POST', `/api/v1/credentials/${id}/${verb}`, call);
      const { state: verdict, result } = await present(city, held);
      seen.push(result.errors[0]?.code ?? verdict);
    }
    const expected = 'STATUS_SUSPENDED, Verified, STATUS_REVOKED';
    if (seen.join(', ') !== expected) throw new Error(`presented: ${seen.join(', ')}`);
    return [`presented each time: ${expected}`, undefined];
  });
}

async function enrolCity(api: Api, token: string, system: LocalSystem) {
  const organization = await createOrganization(api, token, 'issuing-city');
  const chief = await createPerson(api, token, organization, { name: 'chief', role: 'Administrator' });
  const { walletAddress } = await organizationKeys(api, chief.token, organization.id).makeMaster();
  const path = `/api/v1/trust/tenants/${organization.id}/orgs/${walletAddress}/enrol`;
  const enrolled = await api.expect(200, 'POST', path, { token: chief.token, json: {} });
  const { subjectDn, notAfter } = certificateSchema.parse(enrolled.body);
  const service = (await mintWithSvid(system.state, 'service-blueprint')).token;
  const made: City = {
    api,
    organizationId: organization.id,
    walletAddress,
    administrator: chief.token,
    service,
  };
  return { made, subject: subjectDn, until: notAfter.slice(0, 10) };
}

async function offerPermit({ api, walletAddress, organizationId, service }: City) {
  const json = {
    issuerWalletAddress: walletAddress,
    tenantId: organizationId,
    credentialType: 'Site permit',
    claims,
    txCode: { length: 6 },
  };
  return offerSchema.parse((await api.expect(201, 'POST', '/api/v1/offers', { token: service, json })).body);
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
    const { made } = await enrolCity(api, token, system);
    const offer = await offerPermit(made);
    const held = await new HaipWallet(maker).take(offer.credentialOfferReferenceUri, typeCode(offer.txCode));
    const { state } = await present(made, held);
    if (state !== 'Verified') throw new Error(`the presentation is ${state}`);
    return 'an attested wallet: pushed request, transaction code, DPoP, encrypted answer; Verified';
  } finally {
    await system.stop();
  }
}

async function present({ api, administrator: token }: City, held: HeldCredential) {
  const json = {
    credentialType: 'urn:platform:credential:site-permit',
    requiredClaims: asked,
    responseMode: 'direct_post.jwt',
  };
  const created = await api.expect(201, 'POST', '/api/v1/verifier/requests', { token, json });
  const { requestId, authorizationRequestUri } = requestSchema.parse(created.body);
  const wallet = new Openid4vpWallet();
  const answer = await wallet.answer(await wallet.open(authorizationRequestUri), 'credential', held, asked);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  const path = `/api/v1/verifier/requests/${requestId}/result`;
  return resultSchema.parse((await api.expect(200, 'GET', path, { token })).body);
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
