import { create } from '@bufbuild/protobuf';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import { isSelfSigned, parseCertificate } from '#core/trust/certificate.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import {
  CertificateProvenance,
  GetIssuerChainRequestSchema,
} from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { makeCa, makeCertificate, type TestCertificate, usages } from '../issuing/ca.fixture.ts';
import { type Party, startTrustTenant, type TrustTenant } from '../trust.fixture.ts';
import { issuerChainRpc, mayReadChains } from './rpc.ts';

const { INTERNAL, IMPORTED, UNSPECIFIED } = CertificateProvenance;

let trust: TrustTenant;
let root: TestCertificate;
beforeAll(async () => {
  trust = await startTrustTenant('tenant_chains');
  root = await makeCa('CN=root');
});
afterAll(() => trust.tenant.stop());

const peerOf = (clientId: string) => ({ clientId, spiffeId: serviceSpiffeId('x', clientId) });

/** The chain, or the code of the refusal. */
async function ask(
  party: { readonly id: string; readonly wallet: { readonly address: string } },
  provenance: CertificateProvenance,
  mayBeRetired = false,
): Promise<readonly Buffer[] | string> {
  const context = { peer: peerOf('service-credential'), signal: new AbortController().signal };
  const request = create(GetIssuerChainRequestSchema, {
    organizationId: party.id,
    walletAddress: party.wallet.address,
    provenance,
    mayBeRetired,
  });
  try {
    const { chain = [] } = await issuerChainRpc(trust.tenant.deps.trust).getIssuerChain(request, context);
    return chain.map((der) => Buffer.from(der));
  } catch (error) {
    if (isAppError(error)) return error.code;
    throw error;
  }
}

const enrol = (party: Party) => trust.call('POST', `${party.path}/enrol`, { token: party.token, body: {} });

async function importLeaf(party: Party, issuer = root): Promise<TestCertificate> {
  const leaf = await makeCertificate({
    name: 'CN=leaf',
    issuer,
    spki: party.wallet.keys.issuer.publicKey,
    usages: usages.digitalSignature,
  });
  const body = { certificatePem: leaf.pem, chainPem: [issuer.pem] };
  const { status } = await trust.call('POST', `${party.path}/certificates/import`, {
    token: party.token,
    body,
  });
  expect(status).toBe(201);
  return leaf;
}

describe('the chain of an issuer', () => {
  it('of a key that was revoked as compromised is for statuses alone', async () => {
    const party = await trust.makeParty('Compromised', 'compromised');
    await enrol(party);
    const leaf = await importLeaf(party);
    const body = { reason: 'keyCompromise' };
    expect((await trust.call('POST', `${party.path}/revoke`, { token: party.token, body })).status).toBe(200);
    expect(await ask(party, IMPORTED)).toBe('CERT_EXTERNAL_ANCHOR_UNAVAILABLE');
    expect((await trust.call('GET', `${party.path}/imported-cert-chain`)).status).toBe(404);
    expect(await ask(party, IMPORTED, true)).toEqual([leaf.der]);
  });

  it('is of the provenance that is asked for, without its anchor', async () => {
    const { acme } = trust;
    expect(await ask(acme, INTERNAL)).toBe('CERT_NOT_ENROLLED');
    expect(await ask(acme, IMPORTED)).toBe('CERT_EXTERNAL_ANCHOR_UNAVAILABLE');
    await enrol(acme);
    const leaf = await importLeaf(acme);
    expect(await ask(acme, IMPORTED)).toEqual([leaf.der]);
    const own = await ask(acme, INTERNAL);
    expect(own).toHaveLength(1);
    for (const der of [...own, ...(await ask(acme, IMPORTED))]) {
      expect(isSelfSigned(parseCertificate(Buffer.from(der)))).toBe(false);
    }
  });

  it('ends with revocation, retirement, a lock, another wallet and suspension; an outage is said so', async () => {
    const party = await trust.makeParty('Ends', 'ends');
    const both = async () => [await ask(party, INTERNAL), await ask(party, IMPORTED)];
    const none = ['CERT_NOT_ENROLLED', 'CERT_EXTERNAL_ANCHOR_UNAVAILABLE'];
    await enrol(party);
    await importLeaf(party);
    const chains = await both();
    expect(chains.every((chain) => Array.isArray(chain))).toBe(true);
    trust.keys.isDown = true;
    expect(await both()).toEqual(['WALLETS_UNAVAILABLE', 'WALLETS_UNAVAILABLE']);
    trust.keys.isDown = false;
    party.wallet.state = 'locked';
    expect(await both()).toEqual(none);
    party.wallet.state = 'usable';
    const status = (text: string) =>
      trust.tenant.db.transact((tx) =>
        tx.updateTable('organizations').set({ status: text }).where('id', '=', party.id).execute(),
      );
    await status('Suspended');
    expect(await both()).toEqual(none);
    await status('Active');
    expect(await both()).toEqual(chains);
    const revocation = { token: party.token, body: { reason: 'superseded' } };
    await trust.call('POST', `${party.path}/revoke`, revocation);
    expect(await both()).toEqual([none[0], chains[1]]);
    await enrol(party);
    const wallet = trust.keys.makeWallet(party.id);
    expect(await both()).toEqual(none);
    const next = { id: party.id, wallet };
    expect([await ask(next, INTERNAL), await ask(next, IMPORTED)]).toEqual(none);
  });

  it('of an imported certificate that was retired is read for statuses, as long as it holds', async () => {
    const party = await trust.makeParty('Retired', 'retired');
    const statuses = () => ask(party, IMPORTED, true);
    const none = 'CERT_EXTERNAL_ANCHOR_UNAVAILABLE';
    expect(await statuses()).toBe(none);
    const [first, second] = [await importLeaf(party), await importLeaf(party)];
    expect(await statuses()).toEqual([second.der]);
    const listed = (await trust.call('GET', `${party.path}/certificates`, { token: party.token })).body;
    for (const { id } of listed.certificates)
      await trust.call('DELETE', `${party.path}/certificates/${id}`, { token: party.token });
    expect(await ask(party, IMPORTED)).toBe(none);
    expect(await statuses()).toEqual([second.der]);
    const setEnd = (der: Buffer) =>
      trust.tenant.db.transact((tx) =>
        tx
          .updateTable('organization_certificates')
          .set({ usable_until: new Date(trust.tenant.clock.nowMs()) })
          .where('chain', '@>', sql<Buffer[]>`${[der]}::bytea[]`)
          .execute(),
      );
    await setEnd(second.der);
    expect(await statuses()).toEqual([first.der]);
    party.wallet.state = 'locked';
    expect(await statuses()).toBe(none);
    party.wallet.state = 'usable';
    await setEnd(first.der);
    expect(await statuses()).toBe(none);
    const next = trust.keys.makeWallet(party.id);
    await importLeaf({
      ...party,
      wallet: next,
      path: party.path.replace(party.wallet.address, next.address),
    });
    expect(await statuses()).toBe(none);
  });

  it('is of no other organisation, and needs a request that is well formed', async () => {
    const { acme, other } = trust;
    await enrol(acme);
    expect(await ask({ id: other.id, wallet: acme.wallet }, INTERNAL)).toBe('CERT_NOT_ENROLLED');
    expect(await ask({ id: acme.id, wallet: other.wallet }, INTERNAL)).toBe('CERT_NOT_ENROLLED');
    const unknown = '00000000-0000-4000-8000-000000000000';
    expect(await ask({ id: unknown, wallet: acme.wallet }, INTERNAL)).toBe('CERT_NOT_ENROLLED');
    for (const [id, address, provenance] of [
      ['acme', acme.wallet.address, INTERNAL],
      [acme.id, 'w1', INTERNAL],
      [acme.id, acme.wallet.address, UNSPECIFIED],
    ] as const) {
      expect(await ask({ id, wallet: { address } }, provenance)).toBe('INVALID_REQUEST');
    }
  });

  it('is for the credential service', () => {
    expect(mayReadChains(peerOf('service-credential'))).toBe(true);
    for (const other of ['service-wallet', 'service-blueprint', 'service-operator', 'validator-credential'])
      expect(mayReadChains(peerOf(other)), other).toBe(false);
  });
});
