import { isIP } from 'node:net';
import { z } from 'zod';
import { commonSettings, type Endpoint, endpoint, port } from '#kit/config/config.ts';
import type { ServiceName } from './routing/table.ts';

const serviceEndpoint = (service: string) =>
  endpoint
    .optional()
    .describe(`host:port of the ${service} service's mutual-TLS listener; its paths answer 503 when absent`);

/** Members of a set: they are tried in this order, and whoever answers is kept until a connection to it fails. */
const memberEndpoints = (service: string) =>
  z
    .string()
    .transform((text) =>
      text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
    )
    .pipe(z.array(endpoint).min(1).max(100))
    .optional()
    .describe(
      `comma-separated host:port of the ${service}s' mutual-TLS listeners, tried in this order when one cannot be reached; its paths answer 503 when absent`,
    );

const cidr = z.string().refine((text) => {
  const [address = '', prefix, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  if (prefix === undefined) return true;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128);
}, 'must be an IP address or a CIDR block');

const cidrList = z
  .string()
  .transform((text) =>
    text
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  )
  .pipe(z.array(cidr));

/** Every setting of the gateway; keys are environment names. */
export const gatewaySettings = z.object({
  ...commonSettings,
  NATS_URL: commonSettings.NATS_URL.optional(),
  CHANCERY_GATEWAY_PORT: port
    .default(8080)
    .describe('port of the public listener (plain HTTP; 0 takes any free one)'),
  CHANCERY_GATEWAY_CONNECTIONS: z.coerce
    .number()
    .int()
    .min(1)
    .max(4096)
    .default(128)
    .describe('keep-alive connections to each endpoint of a service'),
  CHANCERY_GATEWAY_ANSWER_SECONDS: z.coerce
    .number()
    .min(1)
    .max(3600)
    .default(60)
    .describe('seconds a service has to begin its answer, and the longest pause within one; then 504'),
  CHANCERY_TRUSTED_PROXIES: cidrList
    .default([])
    .describe('comma-separated CIDR blocks of proxies whose X-Forwarded-* headers are believed'),
  CHANCERY_TENANT_HTTPS: serviceEndpoint('tenant'),
  CHANCERY_WALLET_HTTPS: serviceEndpoint('wallet'),
  CHANCERY_REGISTER_HTTPS: serviceEndpoint('register'),
  CHANCERY_VALIDATOR_HTTPS: memberEndpoints('validator'),
  CHANCERY_PEER_HTTPS: serviceEndpoint('peer'),
  CHANCERY_BLUEPRINT_HTTPS: serviceEndpoint('blueprint'),
  CHANCERY_CREDENTIAL_HTTPS: serviceEndpoint('credential'),
  CHANCERY_TOOL_SERVER_HTTPS: serviceEndpoint('tool-server'),
});

export type GatewayConfig = z.output<typeof gatewaySettings>;

/** The endpoints of each configured service; of all but the validators there is one. */
export function endpointsOf(config: GatewayConfig): ReadonlyMap<ServiceName, readonly Endpoint[]> {
  const single: ReadonlyArray<readonly [ServiceName, Endpoint | undefined]> = [
    ['tenant', config.CHANCERY_TENANT_HTTPS],
    ['wallet', config.CHANCERY_WALLET_HTTPS],
    ['register', config.CHANCERY_REGISTER_HTTPS],
    ['peer', config.CHANCERY_PEER_HTTPS],
    ['blueprint', config.CHANCERY_BLUEPRINT_HTTPS],
    ['credential', config.CHANCERY_CREDENTIAL_HTTPS],
    ['tool-server', config.CHANCERY_TOOL_SERVER_HTTPS],
  ];
  const present = new Map<ServiceName, readonly Endpoint[]>();
  for (const [service, address] of single) if (address !== undefined) present.set(service, [address]);
  const { CHANCERY_VALIDATOR_HTTPS: validators } = config;
  if (validators !== undefined) present.set('validator', validators);
  return present;
}
