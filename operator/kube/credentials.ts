/** What it takes to reach a cluster at this moment. */
export interface ClusterAccess {
  /** `https://host:port`, with a path where a proxy serves several clusters. */
  readonly server: string;
  readonly ca?: string | Uint8Array | undefined;
  readonly cert?: string | Uint8Array | undefined;
  readonly key?: string | Uint8Array | undefined;
  /** Name in the server's certificate, when it is not the host of the address. */
  readonly servername?: string | undefined;
  /** The server's certificate is not checked. */
  readonly skipVerify?: boolean | undefined;
  /** Value of the authorization header. */
  readonly authorization?: string | undefined;
}

/** Where access comes from. Tokens and certificates change under way, so it is read again and again. */
export interface ClusterCredentials {
  read(): Promise<ClusterAccess>;
}

/** Whether two give the same connections; the header travels with each call. */
export function isSameConnection(left: ClusterAccess, right: ClusterAccess): boolean {
  const bytes = (value: string | Uint8Array | undefined) =>
    value === undefined ? undefined : Buffer.from(value).toString('base64');
  return (
    left.server === right.server &&
    left.servername === right.servername &&
    left.skipVerify === right.skipVerify &&
    bytes(left.ca) === bytes(right.ca) &&
    bytes(left.cert) === bytes(right.cert) &&
    bytes(left.key) === bytes(right.key)
  );
}
