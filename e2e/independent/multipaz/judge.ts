import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect, isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { createApi } from '../../harness/api.ts';
import { typeCode } from '../../harness/haip-wallet.ts';
import { issueCertificate } from '../../harness/issued-certificate.ts';
import { createIssuingOrganization, type IssuingOrganization } from '../../harness/issuing-organization.ts';
import { signIn } from '../../harness/journey.ts';
import { startSystem } from '../../harness/system.ts';
import { type Counts, countChecks, failureOf } from '../programs.ts';
import { buildWallet, MultipazWallet, missingForMultipaz, type Received } from './wallet.ts';

/** Multipaz as a wallet of the profile haip-1.0: takes credentials in both formats and presents them. */

const createdSchema = z.object({ requestId: z.string(), authorizationRequestUri: z.string() });
const resultSchema = z.object({
  state: z.string(),
  result: z.object({
    verifiedClaims: z.unknown(),
    errors: z.array(z.object({ code: z.string() })),
    perQuery: z.record(z.string(), z.object({ verifiedClaims: z.unknown() })).optional(),
  }),
});

type Result = z.output<typeof resultSchema>;

/** Claims of a credential in a format, and what a verifier asks of it. */
interface Sample {
  readonly format: 'dc+sd-jwt' | 'mso_mdoc';
  readonly offer: Readonly<Record<string, unknown>>;
  /** As Multipaz names them. */
  readonly claims: Readonly<Record<string, unknown>>;
  readonly ask: Readonly<Record<string, unknown>>;
  readonly shown: unknown;
  readonly query: object;
}

const permitClaims = {
  permitNumber: 'P-17',
  area: 620.5,
  isOpen: true,
  site: { town: 'Zürich' },
  uses: ['a', 'b'],
};
const permitType = 'urn:platform:credential:site-permit';
const permit: Sample = {
  format: 'dc+sd-jwt',
  offer: { claims: permitClaims },
  claims: permitClaims,
  ask: { credentialType: permitType, requiredClaims: ['permitNumber', 'site'] },
  shown: { permitNumber: 'P-17', site: { town: 'Zürich' } },
  query: {
    id: 'permit',
    format: 'dc+sd-jwt',
    meta: { vct_values: [permitType] },
    claims: [{ path: ['permitNumber'] }, { path: ['site'] }],
  },
};

const nameSpace = 'org.iso.18013.5.1';
const docType = 'org.iso.18013.5.1.mDL';
const licenceElements = { family_name: 'Müller', age_over_18: true, height: 178 };
const licence: Sample = {
  format: 'mso_mdoc',
  offer: {
    credentialType: 'Driving licence',
    format: 'mso_mdoc',
    doctype: docType,
    claims: { [nameSpace]: licenceElements },
    validitySeconds: 2_592_000,
  },
  claims: Object.fromEntries(
    Object.entries(licenceElements).map(([name, value]) => [`${nameSpace}/${name}`, value]),
  ),
  ask: {
    credentialType: docType,
    format: 'mso_mdoc',
    requiredClaims: [`${nameSpace}/family_name`, `${nameSpace}/age_over_18`],
  },
  shown: { [nameSpace]: { family_name: 'Müller', age_over_18: true } },
  query: {
    id: 'licence',
    format: 'mso_mdoc',
    meta: { doctype_value: docType },
    claims: [{ path: [nameSpace, 'family_name'] }, { path: [nameSpace, 'age_over_18'] }],
  },
};
/** Multipaz keeps two keys of each credential. */
const copies = 2;

interface World {
  readonly api: ReturnType<typeof createApi>;
  readonly organization: IssuingOrganization;
  readonly wallet: MultipazWallet;
}

/** Asks the wallet for a presentation; what the verifier says of it. */
async function present({ api, organization, wallet }: World, json: object): Promise<Result> {
  const { token } = organization.administrator;
  const made = await api.expect(201, 'POST', '/api/v1/verifier/requests', { token, json });
  const { requestId, authorizationRequestUri } = createdSchema.parse(made.body);
  await wallet.present(authorizationRequestUri);
  const path = `/api/v1/verifier/requests/${requestId}/result`;
  return resultSchema.parse((await api.expect(200, 'GET', path, { token })).body);
}

/** Multipaz takes a decoy (RFC 9901, section 4.2.5) for the digest of a claim that is missing. */
const decoy = /^Digest '[\w-]{43}' referenced in claims tree is missing from SD-JWT disclosures$/;

function isAsOffered({ kind, claims, faults }: Received, sample: Sample): boolean {
  const read = Object.fromEntries(Object.keys(sample.claims).map((name) => [name, claims[name]]));
  // An SD-JWT VC has claims of its own: its type, times, key and status.
  const isWhole = sample.format === 'mso_mdoc' ? isDeepStrictEqual(claims, sample.claims) : true;
  return (
    kind === sample.format &&
    faults.every((one) => decoy.test(one)) &&
    isWhole &&
    isDeepStrictEqual(read, sample.claims)
  );
}

const isVerified = ({ state, result }: Result, shown: unknown) =>
  state === 'Verified' && isDeepStrictEqual(result.verifiedClaims, shown);

async function judgeFormat(world: World, sample: Sample, link: 'byValue' | 'byReference') {
  const { organization, wallet } = world;
  const made = await organization.offer(sample.offer);
  const offer = link === 'byValue' ? made.credentialOfferUri : made.credentialOfferReferenceUri;
  const received = await wallet.take(offer, typeCode(made.txCode ?? ''));
  const first = await present(world, sample.ask);
  const renewed = await wallet.renew();
  const ids = await organization.credentialIds(made.offerId);
  for (const id of ids) await organization.change(id, 'suspend');
  const suspended = await present(world, sample.ask);
  for (const id of ids) await organization.change(id, 'reinstate');
  const reinstated = await present(world, sample.ask);
  const facts = { received, first, renewed, ids, suspended, reinstated };
  return {
    facts,
    checks: {
      [`${sample.format}: Multipaz takes an offer, a credential for each of its keys`]:
        received.length === copies,
      [`${sample.format}: it reads the offered claims and finds no fault`]: received.every((one) =>
        isAsOffered(one, sample),
      ),
      [`${sample.format}: it gets one more by its refresh token, with the same claims`]:
        renewed.length === copies + 1 &&
        ids.length === copies + 1 &&
        renewed.every((one) => isAsOffered(one, sample)),
      [`${sample.format}: the verifier gets the requested claims alone`]: isVerified(first, sample.shown),
      [`${sample.format}: a suspended credential is refused`]:
        suspended.state === 'Failed' &&
        isDeepStrictEqual(
          suspended.result.errors.map(({ code }) => code),
          ['STATUS_SUSPENDED'],
        ),
      [`${sample.format}: it counts again when it is reinstated`]: isVerified(reinstated, sample.shown),
    },
  };
}

/** One request for both credentials. */
async function judgeBoth(world: World) {
  const declaredQuery = { credentials: [permit.query, licence.query] };
  const both = await present(world, { declaredQuery });
  const shown = Object.fromEntries(
    Object.entries(both.result.perQuery ?? {}).map(([id, { verifiedClaims }]) => [id, verifiedClaims]),
  );
  const isRight = isDeepStrictEqual(shown, { permit: permit.shown, licence: licence.shown });
  return {
    facts: { both },
    checks: { 'both formats in one answer are verified': both.state === 'Verified' && isRight },
  };
}

/** A wallet whose maker this installation does not know. */
async function judgeUnknownMaker({ organization }: World, makerFile: string) {
  await using wallet = new MultipazWallet(makerFile);
  const made = await organization.offer(permit.offer);
  const taken = wallet.take(made.credentialOfferUri, typeCode(made.txCode ?? ''));
  const refusal = await taken.then(() => 'none', String);
  return {
    facts: { refusal },
    checks: { 'a wallet whose maker is not known gets nothing': /invalid_client/.test(refusal) },
  };
}

/** Both formats on an installation of its own. */
async function judgeInstallation(
  title: string,
  root: string,
  requiresKeyAttestation: boolean,
): Promise<Counts> {
  const [maker, other, verifier] = await Promise.all([
    issueCertificate(root, 'maker', 'wallet.example'),
    issueCertificate(root, 'other', 'wallet.example'),
    issueCertificate(root, 'verifier', 'localhost'),
  ]);
  const env = {
    Haip__Profile: 'haip-1.0',
    Haip__AttestationAuthorities: maker.authorityFile,
    Haip__RequireKeyAttestation: String(requiresKeyAttestation),
    Haip__VerifierCertificate: verifier.bundleFile,
  };
  const { state, stop } = await startSystem({ dataDir: join(root, 'data'), env });
  await using ending = new AsyncDisposableStack();
  ending.defer(async () => void (await stop()));
  const api = createApi(state.gatewayUrl);
  const { access_token: token } = await signIn(api, state);
  const organization = await createIssuingOrganization({ api, token: () => token, state });
  await using wallet = new MultipazWallet(maker.bundleFile);
  const world = { api, organization, wallet };
  const judged = [
    await judgeFormat(world, permit, 'byValue'),
    await judgeFormat(world, licence, 'byReference'),
    await judgeBoth(world),
    await judgeUnknownMaker(world, other.bundleFile),
  ];
  const counts = countChecks(title, Object.assign({}, ...judged.map(({ checks }) => checks)));
  if (counts.failed > 0)
    process.stdout.write(
      `${inspect(
        judged.map(({ facts }) => facts),
        { depth: 10 },
      )}\n`,
    );
  return counts;
}

/** Runs Multipaz as a wallet on local modes of the profile haip-1.0. */
export async function judgeMultipaz(): Promise<Counts[]> {
  const missing = await missingForMultipaz();
  if (missing !== undefined) {
    process.stdout.write(`\nleft out: Multipaz: ${missing}\n`);
    return [];
  }
  const fault = await buildWallet();
  if (fault !== undefined) return [failureOf('Multipaz')(fault)];
  const all: Counts[] = [];
  for (const requiresKeyAttestation of [false, true]) {
    const title = `Multipaz with ${requiresKeyAttestation ? 'an attestation' : 'proofs'} of its keys`;
    const root = mkdtempSync(join(tmpdir(), 'chancery-multipaz-'));
    all.push(await judgeInstallation(title, root, requiresKeyAttestation).catch(failureOf(title)));
    rmSync(root, { recursive: true, force: true });
  }
  return all;
}
