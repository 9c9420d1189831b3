// Whether a host is the machine that the program runs on.

/** By its name or address, as configurations, URLs and Host headers write it. */
export const namesThisMachine = (host: string): boolean => /^(?:localhost|127\.[\d.]+|\[?::1\]?)$/.test(host);

/** By the address of a connection's other end, as the system reports it. */
export const isLoopbackPeer = (address: string): boolean => /^(?:::ffff:)?127\.|^::1$/.test(address);
