import { sign } from 'node:crypto';
import { createLoTE, service, signLoTE, trustedEntity } from '@owf/eudi-lote';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { startReplica } from '../../tenant.fixture.ts';
import { importTrustList } from './import-list.ts';
import { jwsOf, makeCertificate, WITHDRAWN } from './lists.fixture.ts';
import { outcome, startListTenant, stopReplica } from './tenant-lists.fixture.ts';

let the: Awaited<ReturnType<typeof startListTenant>>;

beforeAll(async () => {
  the = await startListTenant('tenant_trust_import');
});
afterAll(() => the.stop());
beforeEach(() => the.clear());

const audited = () =>
  the.tenant.db.read
    .selectFrom('audit_events')
    .select(['event_type', 'success', 'details', 'organization_id'])
    .where('event_type', 'in', ['TrustListImported', 'TrustListRemoved'])
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow();

/** A list of trusted entities with one service (ETSI TS 119 602); scheme and service can be changed. */
const entityList = (scheme: object, service: object = {}) => ({
  LoTE: {
    ListAndSchemeInformation: {
      LoTEVersionIdentifier: 1,
      LoTESequenceNumber: 1,
      SchemeOperatorName: [{ lang: 'en', value: 'Wallets' }],
      ListIssueDateTime: '2026-01-01T00:00:00Z',
      ...scheme,
    },
    TrustedEntitiesList: [
      {
        TrustedEntityServices: [
          {
            ServiceInformation: {
              ServiceDigitalIdentity: {
                X509Certificates: the.anchors.map(({ base64 }) => ({ val: base64 })),
              },
              ...service,
            },
          },
        ],
      },
    ],
  },
});

describe('import of trust lists', () => {
  it('makes an uploaded list active, with its anchors and its document', async () => {
    const file = the.listOf({
      sequence: 7,
      services: [
        { certificates: the.anchors.map(({ base64 }) => base64) },
        { status: WITHDRAWN, certificates: [the.other.base64] },
        { type: 'http://uri.etsi.org/TrstSvc/Svctype/TSA/QTST', certificates: [the.other.base64] },
      ],
    });
    const answer = await the.upload(file, { expectedSignerSha256: the.signer.sha256.toUpperCase() });
    expect(answer.statusCode).toBe(201);
    const snapshot = {
      trustListId: 'eu-pid',
      sequenceNumber: 7,
      status: 'Active',
      schemeTerritory: 'DE',
      schemeOperatorName: 'Test Operator',
      listIssueDateTime: '2026-01-01T00:00:00.000Z',
      nextUpdate: '2050-01-01T00:00:00.000Z',
      freshness: 'Fresh',
      rootCount: 2,
      signerCertSubject: 'C=DE, O=Operator, CN=Signer',
      signerCertThumbprint: the.signer.sha256,
      source: 'upload',
      createdAt: answer.json().importedAt,
      importedAt: expect.any(String),
      rawDocumentSha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      extracted: 2,
      skipped: { type: 1, status: 1, expired: 0, notCa: 0, unparsable: 0 },
    };
    expect(answer.json()).toEqual(snapshot);
    expect((await the.get('')).json()).toEqual({ trustLists: [snapshot] });
    const detail = (await the.get('/eu-pid')).json();
    expect(detail).toMatchObject(snapshot);
    expect(detail.anchors).toHaveLength(2);
    expect(detail.anchors[0]).toEqual({
      subjectDn: 'C=DE, O=Operator, CN=One',
      thumbprint: the.anchors[0]?.sha256,
      serviceType: 'http://uri.etsi.org/TrstSvc/Svctype/CA/QC',
      serviceStatus: 'http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted',
      notBefore: '2020-01-01T00:00:00.000Z',
      notAfter: '2060-01-01T00:00:00.000Z',
    });
    const stored = await the.tenant.db.read
      .selectFrom('trust_list_snapshots')
      .select('document')
      .executeTakeFirst();
    expect(stored?.document.equals(file)).toBe(true);
    expect(await audited()).toMatchObject({
      event_type: 'TrustListImported',
      success: true,
      organization_id: SYSTEM_ORGANIZATION_ID,
      details: {
        trustListId: 'eu-pid',
        sequenceNumber: 7,
        signerThumbprint: the.signer.sha256,
        rootCount: 2,
      },
    });
  });

  it('fetches a list once, in whichever format it has', async () => {
    const operator = { SchemeOperatorName: [{ lang: 'en', value: 'Wallets' }], LoTESequenceNumber: 3 };
    const location = { StreetAddress: 'Main 1', Locality: 'Berlin', PostalCode: '10115', Country: 'DE' };
    const issuance = service()
      .name('Issuance')
      .type('http://uri.etsi.org/19602/SvcType/PID/Issuance')
      .addCertificate(the.anchors[0]?.base64 ?? '');
    const entity = trustedEntity().name('Provider').postalAddress(location).email('a@example.org');
    const { jws } = await signLoTE({
      lote: createLoTE(operator, [entity.addService(issuance.build()).build()]),
      keyId: 'signer',
      certificates: [`-----BEGIN CERTIFICATE-----\n${the.signer.base64}\n-----END CERTIFICATE-----`],
      signer: (input) =>
        sign('sha256', Buffer.from(input), { key: the.signer.key, dsaEncoding: 'ieee-p1363' }).toString(
          'base64url',
        ),
    });
    // the media type and the name tell nothing
    the.source.documents = { '/list.xml': { body: jws } };
    const sourceUrl = `${the.source.address}/list.xml`;
    const answer = await the.sendJson({ trustListId: 'json', sourceUrl, confirmNewSigner: true });
    expect(answer.statusCode).toBe(201);
    expect(answer.json()).toMatchObject({
      sequenceNumber: 3,
      schemeTerritory: null,
      sourceUrl,
      source: sourceUrl,
    });
    const roots = (await the.get('/json/anchors', the.machine)).json();
    expect(roots).toMatchObject({ trustListId: 'json', sequenceNumber: 3, freshness: 'Fresh' });
    expect(roots.roots).toEqual([the.anchors[0]?.base64]);
  });

  it('refuses a tampered list, and writes that down', async () => {
    const file = Buffer.from(the.listOf().toString().replace('granted', 'Granted'));
    expect(outcome(await the.upload(file, the.pinned))).toEqual([400, 'TRUSTLIST_SIGNATURE_INVALID']);
    expect(await audited()).toMatchObject({
      event_type: 'TrustListImported',
      success: false,
      details: { trustListId: 'eu-pid', reason: 'TRUSTLIST_SIGNATURE_INVALID' },
    });
    expect(outcome(await the.upload(Buffer.from('no list'), the.pinned))).toEqual([
      400,
      'TRUSTLIST_MALFORMED',
    ]);
    expect((await the.get('')).json()).toEqual({ trustLists: [] });
    expect(outcome(await the.get('/eu-pid'))).toEqual([404, 'TRUSTLIST_UNAVAILABLE']);
  });

  it('refuses a list that cannot be stored as it is, and writes nothing of it', async () => {
    const body = { trustListId: 'odd', sourceUrl: `${the.source.address}/odd`, ...the.pinned };
    const importOf = (list: object) => {
      the.source.documents = { '/odd': { body: jwsOf(list, the.signer) } };
      return the.sendJson(body);
    };
    const service = { ServiceTypeIdentifier: 'http://uri.etsi.org/19602/SvcType/PID/Issuance' };
    const lists: readonly (readonly [string, object])[] = [
      ['operator', entityList({ SchemeOperatorName: [{ lang: 'en', value: 'a\u0000b' }] })],
      ['territory', entityList({ SchemeTerritory: 'D\u0000' })],
      ['time before the year 1', entityList({ ListIssueDateTime: '0001-01-01T00:00:00+00:01' })],
      ['time after the year 9999', entityList({ NextUpdate: '9999-12-31T23:59:59-00:01' })],
      ['day that no month has', entityList({ ListIssueDateTime: '2026-02-30T00:00:00Z' })],
      ['type', entityList({}, { ServiceTypeIdentifier: `${service.ServiceTypeIdentifier}\u0000` })],
      ['status', entityList({}, { ...service, ServiceStatus: 'granted\u0000' })],
    ];
    const refused = [400, 'TRUSTLIST_MALFORMED'];
    for (const [what, list] of lists) expect([what, outcome(await importOf(list))]).toEqual([what, refused]);
    expect((await the.get('')).json()).toEqual({ trustLists: [] });
    expect((await importOf(entityList({}, service))).statusCode).toBe(201);
  });

  it('escapes what the name of a certificate has that a line cannot hold', async () => {
    const odd = await makeCertificate({ name: 'a\u0000b' });
    const file = the.listOf({ services: [{ certificates: [odd.base64] }] }, odd);
    expect((await the.upload(file, { expectedSignerSha256: odd.sha256 })).statusCode).toBe(201);
    const { anchors, signerCertSubject } = (await the.get('/eu-pid')).json();
    for (const name of [anchors[0].subjectDn, signerCertSubject])
      expect(name).toBe('C=DE, O=Operator, CN=a\\00b');
  });

  it('needs the the.signer, or a confirmation, for the first version and for each new signer', async () => {
    expect(outcome(await the.upload(the.listOf()))).toEqual([400, 'TRUSTLIST_SIGNATURE_INVALID']);
    const wrong = { expectedSignerSha256: the.other.sha256 };
    expect(outcome(await the.upload(the.listOf(), wrong))).toEqual([400, 'TRUSTLIST_SIGNATURE_INVALID']);
    // an expected signer is expected also beside a confirmation
    const both = { ...wrong, confirmNewSigner: 'true' };
    expect(outcome(await the.upload(the.listOf(), both))).toEqual([400, 'TRUSTLIST_SIGNATURE_INVALID']);
    expect((await the.upload(the.listOf(), { confirmNewSigner: 'true' })).statusCode).toBe(201);
    expect((await the.upload(the.listOf({ sequence: 2 }))).statusCode).toBe(201);
    const foreign = the.listOf({ sequence: 3 }, the.other);
    expect(outcome(await the.upload(foreign))).toEqual([400, 'TRUSTLIST_SIGNATURE_INVALID']);
    expect(outcome(await the.upload(foreign, { confirmNewSigner: 'false' }))).toEqual([
      400,
      'TRUSTLIST_SIGNATURE_INVALID',
    ]);
    expect((await the.upload(foreign, wrong)).statusCode).toBe(201);
    expect(outcome(await the.upload(the.listOf({ sequence: 4 })))).toEqual([
      400,
      'TRUSTLIST_SIGNATURE_INVALID',
    ]);
  });

  it('refuses sequence numbers that do not exceed the active one', async () => {
    await the.upload(the.listOf({ sequence: 5 }), the.pinned);
    for (const sequence of [4, 5]) {
      expect(outcome(await the.upload(the.listOf({ sequence })))).toEqual([
        409,
        'TRUSTLIST_SEQUENCE_REGRESSION',
      ]);
    }
    expect((await the.upload(the.listOf({ sequence: 9, services: [] }))).json()).toMatchObject({
      rootCount: 0,
    });
    const detail = (await the.get('/eu-pid')).json();
    expect(detail.anchors).toEqual([]);
    expect(detail.versions).toMatchObject([
      { sequenceNumber: 9, status: 'Active' },
      { sequenceNumber: 5, status: 'Superseded' },
    ]);
    expect(
      (await the.upload(the.listOf({ sequence: 1 }), { ...the.pinned, trustListId: 'other' })).statusCode,
    ).toBe(201);
  });

  it('takes one of two equal versions that are imported at once on two replicas', async () => {
    const replica = await startReplica({ ...the.tenant.files, remove: async () => undefined });
    try {
      for (const sequence of [1, 2, 3]) {
        const both = await Promise.all([
          the.upload(the.listOf({ sequence }), the.pinned),
          the.upload(the.listOf({ sequence }), the.pinned, replica),
        ]);
        expect(both.map(({ statusCode }) => statusCode).sort()).toEqual([201, 409]);
      }
    } finally {
      await stopReplica(replica);
    }
    expect((await the.get('/eu-pid')).json().versions).toHaveLength(3);
  });

  it('judges the signer by the version that is active when it commits', async () => {
    await the.upload(the.listOf({ sequence: 1 }), the.pinned);
    const { reader } = the.tenant.deps.trustLists;
    const read = reader.read.bind(reader);
    const changing = {
      ...the.tenant.deps.trustLists,
      reader: {
        ...reader,
        read: async (...given: Parameters<typeof read>) => {
          const list = await read(...given);
          await the.upload(the.listOf({ sequence: 2 }, the.other), {
            expectedSignerSha256: the.other.sha256,
          });
          return list;
        },
      },
    };
    const caller = await the.tenant.authenticator.authenticate(the.admin);
    await expect(
      importTrustList(changing, {
        trustListId: 'eu-pid',
        source: { document: the.listOf({ sequence: 3 }) },
        expectedSignerSha256: undefined,
        confirmNewSigner: false,
        by: caller,
        origin: {},
      }),
    ).rejects.toMatchObject({ code: 'TRUSTLIST_SIGNATURE_INVALID' });
    expect((await the.get('/eu-pid')).json()).toMatchObject({
      sequenceNumber: 2,
      signerCertThumbprint: the.other.sha256,
    });
  });
});
