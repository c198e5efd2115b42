import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ORGANIZATION_ID, OWNER, REGISTER_ID, UIDS } from '../plan/testing/objects.ts';
import { organizationsOf } from './organizations.ts';
import { registersOf } from './registers.ts';
import { type HttpsService, startHttpsService } from './testing/https-service.ts';
import { walletsOf } from './wallets.ts';

let server: HttpsService;

beforeEach(async () => {
  server = await startHttpsService();
});

afterEach(() => server.close());

const notFound = (code: string) => ({ status: 404, body: { code } });

describe('organisations', () => {
  const body = {
    organizationId: ORGANIZATION_ID,
    resourceUid: UIDS.tenant,
    state: 'Active',
    name: 'Acme',
    subdomain: 'acme',
    organizationType: 'Standard',
    isPlatformOrganization: false,
    branding: { primaryColor: '#112233', logoUrl: null },
    userCount: 3,
    createdAt: '2026-01-01T00:00:00.000Z',
    deletedAt: null,
    purgedAfter: null,
    version: 2,
  };
  const facts = {
    organizationId: ORGANIZATION_ID,
    state: 'Active',
    name: 'Acme',
    subdomain: 'acme',
    organizationType: 'Standard',
    branding: { primaryColor: '#112233' },
    userCount: 3,
  };

  test('are found by uid', async () => {
    const organizations = organizationsOf(await server.connect());
    server.reply = () => ({ status: 200, body });
    expect(await organizations.find(UIDS.tenant)).toEqual(facts);
    expect(server.received).toMatchObject([
      { method: 'GET', path: `/api/internal/organizations/by-uid/${UIDS.tenant}` },
    ]);
  });

  test('are missing only with the code of the service', async () => {
    const organizations = organizationsOf(await server.connect());
    server.reply = () => notFound('ORGANIZATION_NOT_FOUND');
    expect(await organizations.find(UIDS.tenant)).toBeUndefined();
    server.reply = () => notFound('NOT_FOUND');
    await expect(organizations.find(UIDS.tenant)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('are created with the uid in the body', async () => {
    const organizations = organizationsOf(await server.connect());
    server.reply = () => ({ status: 201, body });
    const desired = {
      name: 'Acme',
      subdomain: 'acme',
      organizationType: 'Standard',
      suspended: false,
    } as const;
    expect(await organizations.upsert(UIDS.tenant, desired)).toEqual(facts);
    expect(server.received).toMatchObject([
      { method: 'POST', path: '/api/internal/organizations', body: { resourceUid: UIDS.tenant, ...desired } },
    ]);
  });

  test('are removed by the policy', async () => {
    const organizations = organizationsOf(await server.connect());
    server.reply = () => ({ status: 204 });
    await organizations.remove(UIDS.tenant, 'Suspend');
    expect(server.received).toMatchObject([
      { method: 'DELETE', path: `/api/internal/organizations/by-uid/${UIDS.tenant}?policy=Suspend` },
    ]);
  });
});

test('the wallet is requested once', async () => {
  const wallets = walletsOf(await server.connect());
  const body = {
    name: 'registers',
    walletId: 'w',
    walletAddress: OWNER,
    publicKey: '',
    algorithm: 'ED25519',
  };
  server.reply = () => ({ status: 200, body });
  expect(await wallets.ensure()).toBe(OWNER);
  expect(await wallets.ensure()).toBe(OWNER);
  expect(server.received).toMatchObject([
    { method: 'PUT', path: '/api/internal/service-wallets/registers', body: {} },
  ]);
});

describe('registers', () => {
  const body = {
    uid: UIDS.register,
    registerId: REGISTER_ID,
    phase: 'Online',
    organizationId: ORGANIZATION_ID,
    title: 'Invoices',
    description: null,
    purpose: 'General',
    devMode: false,
    metadata: { sandbox: 'true' },
    createdAt: '2026-01-01T00:00:00.000Z',
    genesisTransactionId: 'ab'.repeat(32),
    genesisHash: 'cd'.repeat(32),
    height: 3,
    headHash: 'ef'.repeat(32),
    lastSealedTime: '2026-01-01T00:00:01.000Z',
    pendingAttestations: [],
    roster: [{ did: `did:platform:w:${OWNER}`, walletAddress: OWNER, role: 'Owner' }],
    operatorRole: 'Owner',
    policyVersion: 2,
    policy: { version: 2, consensus: { docketBuildIntervalMs: 500 } },
    cryptoPolicyVersion: 1,
    pendingProposals: [
      {
        proposalId: 'p',
        operationType: 'policy-update',
        target: null,
        proposerDid: `did:platform:w:${OWNER}`,
        votesReceived: 1,
        votesRequired: 2,
        votedByOperator: true,
        status: 'Pending',
        expiresAt: '2026-01-08T00:00:00.000Z',
        operation: {},
      },
    ],
    outstanding: [{ change: 'removeValidator', txId: 'ff', submittedAt: '2026-01-01T00:00:02.000Z' }],
    validators: {
      members: [
        {
          validatorId: 'validator-main-0',
          status: 'Active',
          publicKey: 'AA==',
          operational: true,
          lastHeartbeat: null,
        },
      ],
      size: 1,
      quorum: 1,
      faultTolerance: 0,
      operational: 1,
      reachable: 1,
    },
    validation: 'Running',
    haltedReason: null,
    equivocation: [],
    sync: { status: 'Synced', currentDocket: 2, targetDocket: 2, progressPercent: 100, isStale: false },
    mempool: { pending: 4 },
    replicatedElsewhere: false,
    deletion: null,
  };

  test('are parsed completely', async () => {
    const registers = registersOf(await server.connect());
    server.reply = () => ({ status: 200, body });
    expect(await registers.find(UIDS.register)).toMatchObject({
      registerId: REGISTER_ID,
      phase: 'Online',
      title: 'Invoices',
      metadata: { sandbox: 'true' },
      height: 3,
      operatorRole: 'Owner',
      policyVersion: 2,
      policy: { consensus: { docketBuildIntervalMs: 500 } },
      proposals: [{ proposalId: 'p', votesReceived: 1, votesRequired: 2, votedByOperator: true }],
      outstanding: [{ aggregate: 'validators', txId: 'ff' }],
      validators: { size: 1, members: [{ validatorId: 'validator-main-0', operational: true }] },
      pendingTransactions: 4,
      isReplicatedElsewhere: false,
    });
    expect(server.received).toMatchObject([
      { method: 'GET', path: `/api/internal/registers/${UIDS.register}` },
    ]);
  });

  test('are parsed before their genesis', async () => {
    const registers = registersOf(await server.connect());
    const draft = {
      ...body,
      phase: 'Pending',
      title: null,
      devMode: null,
      genesisTransactionId: null,
      genesisHash: null,
      headHash: null,
      lastSealedTime: null,
      operatorRole: null,
      policyVersion: null,
      policy: null,
      validation: null,
      sync: null,
      mempool: null,
      height: 0,
      validators: { members: [], size: 0, quorum: 0, faultTolerance: 0, operational: 0, reachable: 0 },
    };
    server.reply = () => ({ status: 200, body: draft });
    expect(await registers.find(UIDS.register)).toMatchObject({ phase: 'Pending', policy: {}, height: 0 });
  });

  test('are missing only with the code of the service', async () => {
    const registers = registersOf(await server.connect());
    server.reply = () => notFound('REGISTER_NOT_FOUND');
    expect(await registers.find(UIDS.register)).toBeUndefined();
    server.reply = () => notFound('NOT_FOUND');
    await expect(registers.find(UIDS.register)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('are changed, paused and removed by uid', async () => {
    const registers = registersOf(await server.connect());
    server.reply = ({ path }) =>
      path.endsWith('/changes')
        ? { status: 202, body: { registerId: REGISTER_ID, status: 'voting', txId: 't', proposalId: 'p' } }
        : { status: 200, body: { registerId: REGISTER_ID, deletion: null } };
    expect(await registers.change(UIDS.register, { change: 'devModeOff' })).toEqual({
      txId: 't',
      proposalId: 'p',
    });
    await registers.setValidation(UIDS.register, 'Paused');
    await registers.remove(UIDS.register, 'Purge');
    const at = `/api/internal/registers/${UIDS.register}`;
    expect(server.received).toMatchObject([
      { method: 'POST', path: `${at}/changes`, body: { change: 'devModeOff' } },
      { method: 'PUT', path: `${at}/validation`, body: { state: 'Paused' } },
      { method: 'DELETE', path: `${at}?policy=Purge` },
    ]);
  });
});
