import type { Infrastructure } from './infrastructure.ts';

/** What a person reads after `npm start`. Plain text, no secret in it. */
export interface Started {
  readonly gatewayUrl: string;
  readonly mtlsTokenUrl: string;
  readonly adminEmail: string;
  readonly adminPasswordFile: string;
  readonly dataDir: string;
  readonly seconds: number;
  readonly embedded: Infrastructure['embedded'];
}

export function describeStart(started: Started): string {
  const { gatewayUrl, adminEmail, adminPasswordFile } = started;
  const part = (embedded: boolean): string => (embedded ? 'embedded' : 'given');
  return `
Chancery is ready after ${started.seconds.toFixed(1)} s. Ctrl-C stops it.

  Gateway         ${gatewayUrl}
  API reference   ${gatewayUrl}/docs
  mTLS tokens     ${started.mtlsTokenUrl}
  Administrator   ${adminEmail}
  Password        in ${adminPasswordFile}
  State           ${started.dataDir}
  Database ${part(started.embedded.database)}, bus ${part(started.embedded.bus)}, identity ${part(started.embedded.identity)}

Try:
  curl -s ${gatewayUrl}/api/health
  TOKEN=$(curl -s ${gatewayUrl}/api/service-auth/token -d grant_type=password -d username=${adminEmail} --data-urlencode password@${adminPasswordFile} | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
  curl -s ${gatewayUrl}/api/wallets -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' -d '{"title":"Mine","keyType":"ED25519"}'

`;
}
