import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { docketHash } from '#core/ledger/docket.ts';
import { LedgerService } from '#protos/gen/chancery/register/v1/register_pb.js';
import { SystemSignerService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import type { Answer } from '../harness/api.ts';
import { collectEvidence, type Evidence } from '../harness/evidence.ts';
import {
  createRegister,
  createWallet,
  submitThroughRegister,
  waitConfirmed,
  waitOnline,
} from '../harness/journey.ts';
import { connectService, environmentOf } from '../harness/service-caller.ts';
import { mintWithSvid } from '../harness/service-token.ts';
import { installation } from '../harness/shared-system.ts';

const here = installation(['--processes', '--validators', '4']);
const setSize = 4;
const quorum = 3;
const controlPath = 'platform:register-control';

const closers: (() => void)[] = [];
afterAll(() => {
  for (const close of closers) close();
});

describe.runIf(process.platform === 'linux')('only validators write dockets, and only valid ones', () => {
  let registerId = '';
  let evidence: Evidence;
  const path = () => `/api/registers/${registerId}/dockets`;

  /** A sealed docket as the interface returns it, with its records and payloads: the body of POST /dockets. */
  function bodyOf(docketNumber: number) {
    const found = evidence.dockets[docketNumber];
    if (found === undefined) throw new Error(`docket ${docketNumber} is not sealed`);
    const { registerId: _register, ...docket } = found;
    const base64 = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString('base64');
    const transactions = docket.transactionIds.map((txId) => ({
      record: base64(evidence.records.get(txId)),
      payload: base64(evidence.payloads.get(txId)),
    }));
    return { ...docket, transactions };
  }

  const write = async (clientId: string, json: object): Promise<Answer> => {
    const { token } = await mintWithSvid(here.state, clientId);
    return here.api.send('POST', path(), { token, json });
  };
  const refusalOf = ({ status, body }: Answer) => [status, (body as { code?: string }).code];
  const height = async () => {
    const latest = await here.api.expect(200, 'GET', `${path()}/latest`, { token: here.token() });
    return (latest.body as { docketNumber: number }).docketNumber + 1;
  };

  beforeAll(async () => {
    const token = here.token();
    const owner = await createWallet(here.api, token, 'ED25519');
    registerId = await createRegister(here.api, token, 'Docket writers', owner);
    await waitOnline(here.api, token, registerId);
    for (let n = 0; n < 3; n += 1) {
      const sender = owner.walletAddress;
      const txId = await submitThroughRegister(here.api, token, { registerId, sender, payload: { n } });
      await waitConfirmed(here.api, token, registerId, txId);
    }
    evidence = await collectEvidence(here.api, token, registerId);
  });

  test('people, and services that do not seal, are refused', async () => {
    const docket = bodyOf(1);
    expect((await here.api.send('POST', path(), { json: docket })).status).toBe(401);
    const person = await here.api.send('POST', path(), { token: here.token(), json: docket });
    expect(person.status).toBe(403);
    for (const clientId of ['service-wallet', 'service-register', 'service-blueprint']) {
      expect((await write(clientId, docket)).status, clientId).toBe(403);
    }
  });

  test('a repeated docket changes nothing, over REST and over gRPC', async () => {
    const before = await height();
    for (const clientId of ['validator-0', 'validator-3']) {
      const answer = await write(clientId, bodyOf(2));
      expect([answer.status, answer.body]).toMatchObject([200, { docketNumber: 2, status: 'replayed' }]);
    }
    const address = environmentOf(here.state, 'validator-1')['CHANCERY_REGISTER_GRPC'] ?? '';
    const { certificate, transactions, consensusVotes, ...docket } = bodyOf(2);
    const wire = {
      header: {
        ...docket,
        registerId,
        docketNumber: BigInt(docket.docketNumber),
        genesisConfig: docket.genesisConfig ?? '',
        sizeBytes: BigInt(docket.sizeBytes),
      },
      certificate: {
        ...certificate,
        height: BigInt(certificate.height),
        signatures: certificate.signatures.map((each) => ({
          ...each,
          signature: Buffer.from(each.signature, 'base64'),
        })),
      },
      transactions: transactions.map(({ record, payload }) => ({
        record: Buffer.from(record, 'base64'),
        payload: Buffer.from(payload, 'base64'),
        payloadHashForm: 'jcs',
      })),
      attestations: consensusVotes.map((vote) => ({
        ...vote,
        signature: Buffer.from(vote.signature, 'hex'),
      })),
    };
    const connect = async (as: string) => {
      const call = { as, server: 'service-register', address };
      const { client, close } = await connectService(here.state, LedgerService, call);
      closers.push(close);
      return client;
    };
    const validator = await connect('validator-1');
    expect(await validator.writeDocket(wire)).toMatchObject({ outcome: 2, height: BigInt(before) });
    const stranger = await connect('service-wallet');
    await expect(stranger.writeDocket(wire)).rejects.toMatchObject({ kind: 'forbidden' });
    expect(await height()).toBe(before);
  });

  test('another docket for a stored number, and a number ahead, are conflicts', async () => {
    const before = await height();
    const other = { ...bodyOf(3), docketNumber: 2 };
    expect(refusalOf(await write('validator-0', other))).toEqual([409, 'DOCKET_DIVERGENCE']);
    const ahead = await write('validator-0', { ...bodyOf(3), docketNumber: before + 1 });
    expect(refusalOf(ahead)).toEqual([409, 'DOCKET_OUT_OF_ORDER']);
    expect(ahead.body).toMatchObject({ expected: before });
    expect(await height()).toBe(before);
  });

  test('a certificate with a vote too few, or with votes of another round or docket, is refused', async () => {
    const docket = bodyOf(3);
    const { certificate } = docket;
    const withCertificate = (change: object) => ({ ...docket, certificate: { ...certificate, ...change } });
    const signatures = certificate.signatures.slice(0, quorum - 1);
    const few = await write('validator-2', withCertificate({ signatures }));
    expect(refusalOf(few)).toEqual([422, 'VAL_CERT_003']);
    const round = await write('validator-2', withCertificate({ round: certificate.round + 1 }));
    expect(refusalOf(round)).toEqual([422, 'VAL_CERT_002']);
    const [first] = certificate.signatures;
    const borrowed = bodyOf(2).certificate.signatures.find(({ index }) => index === first?.index);
    const mixed = [{ ...first, signature: (borrowed ?? bodyOf(2).certificate.signatures[0])?.signature }];
    const stolen = withCertificate({ signatures: [...mixed, ...certificate.signatures.slice(1)] });
    expect(refusalOf(await write('validator-2', stolen))).toEqual([422, 'VAL_CERT_002']);
    const twice = [...certificate.signatures, ...certificate.signatures.slice(-1)];
    const doubled = await write('validator-2', withCertificate({ signatures: twice }));
    expect(refusalOf(doubled)).toEqual([422, 'VAL_CERT_002']);
    const whole = await write('validator-2', withCertificate({}));
    expect(whole.status).toBe(200);
  });

  test('the next docket is refused with a wrong Merkle root, and without a certificate of its own', async () => {
    const before = await height();
    const { merkleRoot, ...last } = bodyOf(before - 1);
    const timestamp = `2099${last.timestamp.slice(4)}`;
    const next = { ...last, docketNumber: before, previousHash: last.hash, timestamp };
    const hash = docketHash({ ...next, registerId });
    const wrong = merkleRoot.replace(/^./, (digit) => (digit === '0' ? '1' : '0'));
    const corrupted = await write('validator-1', { ...next, hash, merkleRoot: wrong });
    expect(corrupted.status).toBe(422);
    expect(JSON.stringify(corrupted.body)).toContain('MERKLE_MISMATCH');
    const uncertified = await write('validator-1', { ...next, hash, merkleRoot });
    expect(uncertified.status).toBe(422);
    expect(await height()).toBe(before);
  });

  test('the set seals with a quorum of its four members all the while', () => {
    for (const { certificate } of evidence.dockets) {
      const voters = new Set(certificate.signatures.map(({ validatorId }) => validatorId));
      expect(voters.size).toBeGreaterThanOrEqual(quorum);
      expect(voters.size).toBeLessThanOrEqual(setSize);
    }
  });
});

describe.runIf(process.platform === 'linux')('the signing component and its callers', () => {
  let database: pg.Client;
  let address = '';
  const hex = (bytes: number) => randomBytes(bytes).toString('hex');
  const request = (change: object = {}) => ({
    registerId: hex(16),
    transactionId: hex(32),
    payloadHash: hex(32),
    derivationPath: controlPath,
    transactionType: 'Control',
    ...change,
  });
  const signerFor = async (as: string, token = true) => {
    const call = { as, server: 'service-wallet', address, token };
    const { client, close } = await connectService(here.state, SystemSignerService, call);
    closers.push(close);
    return client;
  };
  const rowsOf = async (registerId: string) => {
    const { rows } = await database.query<Record<string, string | null>>(
      'select * from wallet.signing_audit where register_id = $1 order by id',
      [registerId],
    );
    return rows;
  };
  const nameOf = (clientId: string) => `spiffe://${here.state.installation}/service/${clientId}`;

  beforeAll(async () => {
    address = environmentOf(here.state, 'register')['CHANCERY_WALLET_GRPC'] ?? '';
    database = new pg.Client({ connectionString: environmentOf(here.state, 'wallet')['DATABASE_URL'] });
    await database.connect();
  });
  afterAll(() => database.end());

  const register = 'service-register';
  test.each([
    {
      what: 'an unknown path',
      as: register,
      path: 'platform:blueprint-publish',
      code: 'DERIVATION_PATH_REFUSED',
    },
    {
      what: 'the docket path, requested by the register service',
      as: register,
      path: 'platform:docket-signing',
      code: 'SIGNING_NOT_ALLOWED',
    },
    {
      what: 'the control path, requested by a validator',
      as: 'validator-0',
      path: controlPath,
      code: 'SIGNING_NOT_ALLOWED',
    },
    {
      what: 'a service without the claim',
      as: 'service-blueprint',
      path: controlPath,
      code: 'SIGNING_CLAIM_MISSING',
    },
    {
      what: 'a caller without a token',
      as: register,
      path: controlPath,
      code: 'SIGNING_CLAIM_MISSING',
      token: false,
    },
  ])('$what is refused, and the audit row names the caller', async ({ as, path, code, token }) => {
    const wanted = request({ derivationPath: path });
    const signer = await signerFor(as, token);
    await expect(signer.signControl(wanted)).rejects.toMatchObject({ kind: 'forbidden', code });
    const rows = await rowsOf(wanted.registerId);
    expect(rows).toMatchObject([
      {
        caller: nameOf(as),
        register_id: wanted.registerId,
        transaction_type: 'Control',
        transaction_id: wanted.transactionId,
        derivation_path: path,
        decision: 'Refused',
        reason: code,
        at: expect.any(Date),
      },
    ]);
    expect(rows[0]?.['caller_subject'] !== '').toBe(token !== false);
  });

  test('ten control signatures a minute are given for a register, and the eleventh is refused, with an audit row each', async () => {
    const { registerId } = request();
    const signer = await signerFor(register);
    for (let n = 0; n < 10; n += 1) {
      const { signature } = await signer.signControl(request({ registerId }));
      expect(signature).toHaveLength(64);
    }
    const eleventh = request({ registerId });
    await expect(signer.signControl(eleventh)).rejects.toMatchObject({
      kind: 'rate_limited',
      code: 'RATE_LIMITED',
    });
    const rows = await rowsOf(registerId);
    expect(rows.map(({ decision, reason }) => reason ?? decision)).toEqual([
      ...Array<string>(10).fill('Signed'),
      'RATE_LIMITED',
    ]);
    expect(rows.at(-1)).toMatchObject({ transaction_id: eleventh.transactionId, caller: nameOf(register) });
    await expect(signer.signControl(request())).resolves.toMatchObject({ signature: expect.anything() });
  });
});
