import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bearer, formOf, grant, startTestTenant, type TestTenant } from '../../tenant.fixture.ts';
import { makeCertificate, signList, type TestCertificate, type TestList } from './lists.fixture.ts';

const base = '/api/v1/trust/trustlists';
const password = 'granite lantern after rain';
export const boundary = '----form';

type Fields = Readonly<Record<string, string>>;
type At = Pick<TestTenant, 'app'>;

interface SourceAnswer {
  readonly status?: number;
  readonly body: Buffer | string;
  readonly location?: string;
}

/** A server that a tenant may fetch lists from, by path. */
interface ListSource {
  readonly address: string;
  documents: Readonly<Record<string, SourceAnswer>>;
  /** Requests so far. */
  requests: number;
  stop(): Promise<void>;
}

async function startSource(): Promise<ListSource> {
  const server = createServer((request, response) => {
    source.requests += 1;
    const { status = 200, body, location } = source.documents[request.url ?? ''] ?? { status: 404, body: '' };
    response.writeHead(status, location === undefined ? {} : { location }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const source: ListSource = {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    documents: {},
    requests: 0,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
  return source;
}

/** The body of a form with fields and one file. */
export function formBody(fields: Fields, file: Buffer | undefined, fileName = 'file'): Buffer {
  const text = Object.entries(fields)
    .map(
      ([name, value]) =>
        `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    )
    .join('');
  const head = `--${boundary}\r\ncontent-disposition: form-data; name="${fileName}"; filename="list.xml"\r\n\r\n`;
  const part = file === undefined ? [] : [Buffer.from(head), file, Buffer.from('\r\n')];
  return Buffer.concat([Buffer.from(text), ...part, Buffer.from(`--${boundary}--\r\n`)]);
}

/** Status and code of a refusal. */
export const outcome = (answer: { statusCode: number; json(): { code: string } }) => [
  answer.statusCode,
  answer.json().code,
];

/** A tenant with an administrator of the platform, one of an organisation, a service, and signers of lists. */
export async function startListTenant(name: string) {
  const source = await startSource();
  const tenant = await startTestTenant(name, { CHANCERY_OUTBOUND_ALLOWED: source.address });
  const admin = (await grant(tenant)).access_token;
  const post = (url: string, payload: object) =>
    tenant.app.inject({ method: 'POST', url, payload, headers: bearer(admin) });
  const acme = (await post('/api/organizations', { name: 'Acme', subdomain: 'acme' })).json().id;
  const user = { email: 'boss@acme.example', displayName: 'Boss', password, roles: ['Administrator'] };
  await post(`/api/organizations/${acme}/users`, user);
  const boss = (await grant(tenant, user.email, password)).access_token;
  const machine = await serviceToken(tenant);
  const [signer, other, one, two] = await Promise.all(
    ['Signer', 'Other', 'One', 'Two'].map((each) => makeCertificate({ name: each })),
  );
  if (signer === undefined || other === undefined || one === undefined || two === undefined)
    throw new Error('no certificates');
  const anchors: readonly TestCertificate[] = [one, two];
  const sendForm = (payload: Buffer, at: At = tenant, token = admin) =>
    at.app.inject({
      method: 'POST',
      url: `${base}/import`,
      headers: { ...bearer(token), 'content-type': `multipart/form-data; boundary=${boundary}` },
      payload,
    });
  return {
    tenant,
    source,
    admin,
    boss,
    machine,
    signer,
    other,
    anchors,
    pinned: { expectedSignerSha256: signer.sha256 },
    listOf: (list: TestList = {}, by = signer) =>
      Buffer.from(
        signList({ services: [{ certificates: [one.base64, two.base64] }], ...list }, { signer: by }),
      ),
    sendForm,
    upload: (file: Buffer, fields: Fields = {}, at: At = tenant) =>
      sendForm(formBody({ trustListId: 'eu-pid', ...fields }, file), at),
    sendJson: (payload: object) => post(`${base}/import`, payload),
    get: (path: string, token = admin, at: At = tenant) =>
      at.app.inject({ method: 'GET', url: `${base}${path}`, headers: bearer(token) }),
    clear: async () => {
      source.documents = {};
      source.requests = 0;
      await tenant.db.transact((tx) => tx.deleteFrom('trust_list_snapshots').execute());
    },
    stop: async () => {
      await stopReplica(tenant);
      await source.stop();
    },
  };
}

export async function stopReplica(replica: TestTenant): Promise<void> {
  await replica.deps.trustLists.reader.close();
  await replica.stop();
}

async function serviceToken(tenant: TestTenant): Promise<string> {
  const client_secret = tenant.files.secretOf('service-register');
  const form = formOf({ grant_type: 'client_credentials', client_id: 'service-register', client_secret });
  const answer = await tenant.internal.inject({ ...form, url: '/api/internal/service-auth/token' });
  if (answer.statusCode !== 200) throw new Error(answer.body);
  return answer.json().access_token;
}
