import { request } from 'node:https';
import { environmentOf } from './service-caller.ts';
import { type ClientCertificate, fetchSvid, mintWithSvid } from './service-token.ts';
import type { LocalState } from './system.ts';

/** Parsed JSON of whatever shape a route answers. */
type Json = ReturnType<typeof JSON.parse>;

export interface InternalAnswer {
  readonly status: number;
  readonly body: Json;
}

/** The certificate and the token with which an internal route is called. */
export interface As {
  readonly certificate: string;
  readonly token: string | undefined;
}

const operator: As = { certificate: 'service-operator', token: 'service-operator' };

/** Calls internal routes on the mutual-TLS listeners of an installation, as its operator does. */
export function createOperator(state: LocalState) {
  const certificates = new Map<string, Promise<Required<ClientCertificate>>>();
  const tokens = new Map<string, Promise<{ token: string }>>();
  const kept = <T>(map: Map<string, Promise<T>>, name: string, make: () => Promise<T>): Promise<T> => {
    const known = map.get(name) ?? make();
    map.set(name, known);
    return known;
  };
  const listenerOf = (name: string) => {
    const validator = state.validators.find((one) => one.validatorId === name);
    if (validator !== undefined) return validator.https;
    return `127.0.0.1:${environmentOf(state, name)['CHANCERY_HTTPS_PORT']}`;
  };
  /** @param to name of a process: wallet, register, or the id of a validator */
  async function call(to: string, line: string, body?: unknown, as: As = operator): Promise<InternalAnswer> {
    const [method, path] = line.split(' ');
    const { certificate, token: holder } = as;
    const svid = await kept(certificates, certificate, () => fetchSvid(state, certificate));
    const minted =
      holder === undefined ? undefined : await kept(tokens, holder, () => mintWithSvid(state, holder));
    const headers = {
      'content-type': 'application/json',
      ...(minted !== undefined && { authorization: `Bearer ${minted.token}` }),
    };
    return new Promise((resolve, reject) => {
      const options = {
        ...svid,
        method,
        headers,
        agent: false,
        timeout: 10_000,
        checkServerIdentity: () => undefined,
      };
      const asked = request(`https://${listenerOf(to)}${path}`, options, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode ?? 0, body: text === '' ? undefined : JSON.parse(text) });
        });
      });
      asked.on('timeout', () => asked.destroy(new Error(`${to} does not answer ${line}`)));
      asked.on('error', reject);
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
  return { call };
}
