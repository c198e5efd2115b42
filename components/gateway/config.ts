import { isIP } from 'node:net';
import { z } from 'zod';
import { ROUTED_SERVICES, type RoutedService } from '#core/identity/service-routes.ts';
import { serviceOf } from '#core/identity/services.ts';
import { commonSettings, type Endpoint, endpoint, port } from '#kit/config/config.ts';

/** Address of a service: one endpoint, or those of its members. */
type EndpointsSetting = z.ZodOptional<z.ZodType<readonly Endpoint[], string>>;

const oneEndpoint = (service: RoutedService): EndpointsSetting =>
  endpoint
    .transform((address): readonly Endpoint[] => [address])
    .optional()
    .describe(`host:port of the ${service} service's mutual-TLS listener; its paths answer 503 when absent`);

/** Members of a set: they are tried in this order, and the one that answers is used until a connection to it fails. */
const memberEndpoints = (service: RoutedService): EndpointsSetting =>
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

type SettingOf<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `CHANCERY_${Uppercase<First>}_${Uppercase<Rest>}_HTTPS`
  : `CHANCERY_${Uppercase<Name>}_HTTPS`;

/** Name of the setting with the address of a service: `CHANCERY_TOOL_SERVER_HTTPS`. */
const settingOf = (service: RoutedService) =>
  `CHANCERY_${service.toUpperCase().replaceAll('-', '_')}_HTTPS` as SettingOf<RoutedService>;

const serviceSettings = Object.fromEntries(
  ROUTED_SERVICES.map((service) => [
    settingOf(service),
    serviceOf(service).members === true ? memberEndpoints(service) : oneEndpoint(service),
  ]),
) as Record<SettingOf<RoutedService>, EndpointsSetting>;

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
  ...serviceSettings,
});

export type GatewayConfig = z.output<typeof gatewaySettings>;

/** The endpoints of each configured service; all but the validators have one. */
export function endpointsOf(config: GatewayConfig): ReadonlyMap<RoutedService, readonly Endpoint[]> {
  return new Map(
    ROUTED_SERVICES.flatMap((service) => {
      const endpoints = config[settingOf(service)];
      return endpoints === undefined ? [] : [[service, endpoints] as const];
    }),
  );
}
