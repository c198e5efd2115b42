import { createHash, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Api, createApi } from '../harness/api.ts';
import { HaipWallet, typeCode } from '../harness/haip-wallet.ts';
import { type IssuedCertificate, issueCertificate } from '../harness/issued-certificate.ts';
import { createIssuingOrganization, type IssuingOrganization } from '../harness/issuing-organization.ts';
import { signIn } from '../harness/journey.ts';
import { type HeldCredential, Openid4vcWallet } from '../harness/openid4vc-wallet.ts';
import { Openid4vpWallet } from '../harness/openid4vp-wallet.ts';
import { readState } from '../harness/system.ts';
import { explainFailures } from './diagnosis.ts';
import {
  changeInstallation,
  ensureInstalled,
  type GatewayAccess,
  namespace,
  openGateway,
} from './installed.ts';
import { apply, kubectl, must } from './kubectl.ts';
import { requestFrom } from './token-caller.ts';

/** Credentials of a wallet of another maker, issued and verified by pods through the Ingress with TLS. */

const asked = z.object({ requestId: z.string(), authorizationRequestUri: z.string() });
const replicas = 'credential.replicas=2';
const wallet = new Openid4vcWallet();
const presenter = new Openid4vpWallet();

let door: GatewayAccess;
let api: Api;
let organization: IssuingOrganization;
let held: HeldCredential;
let credentialId = '';

/** The token that the blueprint service mints with its certificate. */
async function mintInPod(): Promise<string> {
  const caller = { name: 'offers-credentials', serviceAccount: 'service-blueprint' };
  const form = { grant_type: 'client_credentials', client_id: 'service-blueprint' };
  const { responses } = await requestFrom(
    { ...caller, takenFor: 'service-blueprint' },
    { token: { by: 'svid', form } },
  );
  const minted = z.object({ status: z.literal(200), body: z.object({ access_token: z.string() }) });
  return minted.parse(responses['token']).body.access_token;
}

beforeAll(async () => {
  await ensureInstalled();
  await changeInstallation(replicas);
  door = await openGateway();
  api = createApi(door.url);
  const { access_token: token } = await signIn(api, readState(door.stateFile));
  organization = await createIssuingOrganization({ api, token: () => token, service: await mintInPod() });
}, 300_000);

afterAll(() => changeInstallation(), 200_000);

explainFailures(namespace);

/** A request for the number. */
async function ask(clientIdPrefix: string) {
  const { token } = organization.administrator;
  const json = {
    credentialType: 'urn:platform:credential:site-permit',
    requiredClaims: ['permitNumber'],
    responseMode: 'direct_post.jwt',
    clientIdPrefix,
  };
  const created = await api.expect(201, 'POST', '/api/v1/verifier/requests', { token, json });
  return asked.parse(created.body);
}

/** The result of a presentation of the number. */
async function present(clientIdPrefix: string): Promise<unknown> {
  const { token } = organization.administrator;
  const { requestId, authorizationRequestUri } = await ask(clientIdPrefix);
  const opened = await presenter.open(authorizationRequestUri);
  expect((await presenter.answer(opened, 'credential', held, ['permitNumber'])).status).toBe(200);
  const path = `/api/v1/verifier/requests/${requestId}/result`;
  return (await api.expect(200, 'GET', path, { token })).body;
}

test('a wallet takes an offer by its link and by its reference, at the address of the gateway', async () => {
  const offer = await organization.offer({ txCode: { length: 6 } });
  expect(new URL(offer.credentialOfferReferenceUri).searchParams.get('credential_offer_uri')).toContain(
    `${door.url}/`,
  );
  const [one] = await wallet.take(offer.credentialOfferUri, { txCode: offer.txCode ?? '', dpop: true });
  if (one === undefined) throw new Error('the wallet got no credential');
  held = one;
  [credentialId = ''] = await organization.credentialIds(offer.offerId);
  const other = await organization.offer();
  expect(await wallet.take(other.credentialOfferReferenceUri, { count: 3 })).toHaveLength(3);
});

test.each(['x509_hash', 'x509_san_dns'])(
  'the wallet presents it to %s, and any pod judges it',
  async (prefix) => {
    expect(await present(prefix)).toMatchObject({
      state: 'Verified',
      result: { verifiedClaims: { permitNumber: 'P-17' }, trust: { decision: 'Trusted' } },
    });
  },
);

test('its status holds at every replica while the pods are replaced', async () => {
  await organization.change(credentialId, 'suspend');
  const restarted = must('kubectl', ['rollout', 'restart', 'deployment/service-credential', '-n', namespace]);
  expect(await present('x509_hash')).toMatchObject({ result: { errors: [{ code: 'STATUS_SUSPENDED' }] } });
  await restarted;
  const status = ['rollout', 'status', 'deployment/service-credential', '-n', namespace, '--timeout=120s'];
  await must('kubectl', status, { timeoutMs: 130_000 });
  await organization.change(credentialId, 'reinstate');
  expect(await present('x509_hash')).toMatchObject({ state: 'Verified' });
}, 180_000);

describe('in the profile haip-1.0', () => {
  let directory: string;
  let maker: IssuedCertificate;

  const pods = ['pods', '-l', 'chancery.dev/client-id=service-credential', '-n', namespace];

  /** Stores a verifier's certificate in the Secret that the chart names; the hash by which wallets know it. */
  const applyVerifier = async (name: string): Promise<string> => {
    const { key, certificate } = await issueCertificate(directory, name, new URL(door.url).hostname);
    const metadata = { name: 'verifier-certificate', namespace };
    const stringData = { 'tls.key': key, 'tls.crt': certificate };
    const type = 'kubernetes.io/tls';
    await apply(namespace, { apiVersion: 'v1', kind: 'Secret', type, metadata, stringData });
    return createHash('sha256').update(new X509Certificate(certificate).raw).digest('base64url');
  };

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'chancery-haip-'));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  test('an attested wallet takes and presents a credential, and a new certificate of the verifier is read again', async () => {
    maker = await issueCertificate(directory, 'maker', 'wallet.example');
    const first = await applyVerifier('first');
    const metadata = { name: 'wallet-makers', namespace };
    const data = { 'ca.crt': readFileSync(maker.authorityFile, 'utf8') };
    await apply(namespace, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
    const before = (await kubectl('get', ...pods, '-o', 'name')).trim().split('\n');
    await changeInstallation(
      replicas,
      'credential.profile=haip-1.0',
      'credential.verifierCertificate.existingSecret=verifier-certificate',
      'credential.attestation.configMap=wallet-makers',
    );
    // Until they have ended, pods of the other profile answer a part of the requests.
    await kubectl('wait', '-n', namespace, '--for=delete', '--timeout=90s', ...before);
    const offer = await organization.offer();
    const link = offer.credentialOfferReferenceUri;
    held = await new HaipWallet(maker).take(link, typeCode(offer.txCode ?? ''));
    const clientId = async () => {
      const { authorizationRequestUri } = await ask('x509_hash');
      return new URL(authorizationRequestUri).searchParams.get('client_id');
    };
    expect(await clientId()).toBe(`x509_hash:${first}`);
    expect(await present('x509_hash')).toMatchObject({ state: 'Verified' });
    const second = await applyVerifier('second');
    // The kubelet writes a changed Secret into its pods within two minutes, and at once after another change of the pod.
    await must('kubectl', ['annotate', ...pods, '--overwrite', `test.chancery.dev/changed=${second}`]);
    await expect.poll(clientId, { timeout: 180_000, interval: 2_000 }).toBe(`x509_hash:${second}`);
  }, 500_000);
});
