// Reads the address of a browser behind a proxy from the header that the proxy sends.

/** The last address of x-forwarded-for and the like, which the proxy itself wrote, without a port; null: none. */
export function forwardedAddress(header: string): string | null {
  const last = header.split(",").at(-1)!.trim();
  const [, address = last] = /^\[([^\]]*)\](?::\d+)?$/.exec(last) ?? /^([\d.]+):\d+$/.exec(last) ?? [];
  return isIPv4(address) || isIPv6(address) ? address : null;
}

const isIPv4 = (text: string): boolean =>
  /^\d{1,3}(?:\.\d{1,3}){3}$/.test(text) && text.split(".").every((byte) => Number(byte) <= 255);

const isIPv6 = (text: string): boolean => /^[0-9a-f:.]{2,45}$/i.test(text) && URL.canParse(`http://[${text}]`);
