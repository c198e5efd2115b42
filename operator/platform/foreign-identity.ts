import { z } from 'zod';
import type { IssuerCredentials, IssuerSource } from '#kit/workload/workload.ts';
import type { Installation } from '../api/installation.ts';
import { operatorError } from '../errors.ts';
import type { Api } from '../kube/api.ts';
import { configMaps, serviceAccounts } from '../kube/kinds.ts';
import { isRecord, parseObject } from '../kube/resource.ts';

/** Minimum lifetime that the API server accepts. */
const tokenSeconds = 600;

const tokenRequest = z.object({ status: z.object({ token: z.string().min(1).max(65_536) }) });

type ServiceAccountIdentity = Installation['identity'] & { readonly provider: 'serviceAccount' };

/**
 * Identity of the operator in the installation of another namespace. The issuer of that namespace accepts a token of the
 * ServiceAccount with the operator's client id there. The operator's role allows it to request that token only.
 */
export function foreignIssuer(
  api: Api,
  { installation, namespace, identity }: Installation & { readonly identity: ServiceAccountIdentity },
  clientId: string,
): IssuerSource {
  const audience = `spiffe://${installation}/service/svid-issuer`;
  const credentials = async (): Promise<IssuerCredentials> => {
    const [token, ca] = await Promise.all([
      requestToken(api, { namespace, name: clientId, audience }),
      readAuthorities(api, namespace, identity),
    ]);
    return { token, ca };
  };
  return { url: identity.issuer, installation, credentials };
}

async function requestToken(
  api: Api,
  {
    namespace,
    name,
    audience,
  }: { readonly namespace: string; readonly name: string; readonly audience: string },
): Promise<string> {
  const spec = { audiences: [audience], expirationSeconds: tokenSeconds };
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
  const where = { resource: serviceAccounts, namespace, name, subresource: 'token' };
  return tokenRequest.parse(await api.call({ verb: 'create', ...where, body })).status.token;
}

async function readAuthorities(
  api: Api,
  namespace: string,
  { caConfigMap, caKey }: ServiceAccountIdentity,
): Promise<string> {
  const found = parseObject(
    await api.call({ verb: 'get', resource: configMaps, namespace, name: caConfigMap }),
  );
  const text = isRecord(found['data']) ? found['data'][caKey] : undefined;
  if (typeof text === 'string' && text !== '') return text;
  const message = `ConfigMap ${caConfigMap} of namespace ${namespace} has no key ${caKey} yet`;
  throw operatorError('AUTHORITIES_MISSING', message);
}
