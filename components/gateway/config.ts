import { isIP } from 'node:net';
import { z } from 'zod';
import { addressSettingOf, listServices, type Service } from '#core/identity/services.ts';
import { commonSettings, type Endpoint, endpoint, port } from '#kit/config/config.ts';

/** Address of a service: one endpoint, or those of its members. */
type EndpointsSetting = z.ZodOptional<z.ZodType<readonly Endpoint[], string>>;

const oneEndpoint = (service: string): EndpointsSetting =>
  endpoint
    .transform((address): readonly Endpoint[] => [address])
    .optional()
    .describe(`host:port of the ${service} service's mutual-TLS listener; its paths answer 503 when absent`);

/** Members of a set: they are tried in this order, and the one that answers is used until a connection to it fails. */
const memberEndpoints = (service: string): EndpointsSetting =>
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

/** Settings with the addresses of the routed services. */
type AddressSettings = Record<`CHANCERY_${string}_HTTPS`, EndpointsSetting>;

const routedOf = (services: readonly Service[]) => services.filter(({ routes }) => routes.length > 0);

function addressSettingsOf(services: readonly Service[]): AddressSettings {
  return Object.fromEntries(
    routedOf(services).map(({ name, members }) => [
      addressSettingOf(name, 'https'),
      members === true ? memberEndpoints(name) : oneEndpoint(name),
    ]),
  );
}

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

const ownSettings = {
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
  CHANCERY_GATEWAY_HUB_CONNECTIONS: z.coerce
    .number()
    .int()
    .min(1)
    .max(10_000)
    .default(2000)
    .describe('open WebSockets, event streams and polls of hubs per client address; more answer 429'),
  CHANCERY_UI_UPSTREAM: z
    .url({ protocol: /^https?$/ })
    .refine((text) => URL.parse(text)?.origin === text, 'must be an origin, as https://host:port')
    .optional()
    .describe('origin of a server whose pages replace the built-in ones as a whole'),
  CHANCERY_TRUSTED_PROXIES: cidrList
    .default([])
    .describe('comma-separated CIDR blocks of proxies whose X-Forwarded-* headers are believed'),
};

/** Every setting of a gateway in front of these services; keys are environment names. */
export function gatewaySettingsOf(services: readonly Service[]) {
  return z.object({ ...ownSettings, ...addressSettingsOf(services) });
}

/** Every setting of the gateway of an installation. */
export const gatewaySettings = gatewaySettingsOf(listServices());

export type GatewayConfig = z.output<typeof gatewaySettings>;

/** The endpoints of each configured service; only a service with members has several. */
export function endpointsOf(
  config: GatewayConfig,
  services: readonly Service[],
): ReadonlyMap<string, readonly Endpoint[]> {
  const addresses: Readonly<Record<`CHANCERY_${string}_HTTPS`, readonly Endpoint[] | undefined>> = config;
  return new Map(
    routedOf(services).flatMap(({ name }) => {
      const endpoints = addresses[addressSettingOf(name, 'https')];
      return endpoints === undefined ? [] : [[name, endpoints] as const];
    }),
  );
}
