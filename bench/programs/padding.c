/*
 * Bytes that nobody uses, linked in front of a benchmark program: they move its code and its data.
 * What is compiled first into .text.unlikely lies first among the code.
 */
#define TEXT(number) #number
#define NUMBER(number) TEXT(number)

__asm__(".section .text.unlikely, \"ax\", %progbits\n"
        ".skip " NUMBER(TEXT_BYTES) "\n"
        ".data\n"
        ".skip " NUMBER(DATA_BYTES) "\n"
        ".bss\n"
        ".skip " NUMBER(DATA_BYTES) "\n"
        ".text\n");
