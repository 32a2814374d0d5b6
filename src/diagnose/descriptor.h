/*
 * File descriptors in words: what they are, and who is at the other end.
 */
#ifndef SS_DIAGNOSE_DESCRIPTOR_H
#define SS_DIAGNOSE_DESCRIPTOR_H

#include "diagnose/diagnosis.h"

/* "4711 (cat)", or "this process"; of a thread of ours, its id. */
void ss_descriptor_write_process(const struct ss_facts *facts,
				 const struct ss_process_fact *process,
				 struct ss_words *words);

/* "TCP connection 127.0.0.1:80 to ...", a path, ...; nothing where it is not known. */
void ss_descriptor_write(const struct ss_facts *facts, const struct ss_fd_fact *fd,
			 struct ss_words *words);

/* Writes "fd 5, TCP connection ..." and sets fd and object of the wait. */
void ss_descriptor_describe(struct ss_diagnosis *d, int fd);

/* "127.0.0.1:80", "[::1]:80", "*:80" */
void ss_descriptor_write_address(const struct ss_net_address *address,
				 struct ss_words *words);

#endif
